import assert from 'node:assert/strict';
import type { QueryStats } from './query-profiler.js';

/** Asserts that the queries together examined at most so many keys and documents, without a scan of a collection. */
export function assertBounded(
  queries: QueryStats[],
  maxKeys: number,
  maxDocuments: number,
  { mayBeSorted = false } = {},
): void {
  const keys = queries.reduce((sum, query) => sum + query.keys, 0);
  const documents = queries.reduce((sum, query) => sum + query.documents, 0);
  const details = JSON.stringify(queries.map(({ stages: [top], ...query }) => ({ ...query, top })));
  assert.ok(queries.length > 0, 'nothing was measured');
  assert.ok(keys <= maxKeys, `${keys} keys, expected at most ${maxKeys}: ${details}`);
  assert.ok(
    documents <= maxDocuments,
    `${documents} documents, expected at most ${maxDocuments}: ${details}`,
  );
  for (const { stages } of queries) {
    assert.ok(!stages.includes('COLLSCAN'), 'a scan of the collection');
    assert.ok(mayBeSorted || !stages.includes('SORT'), 'a sort in memory');
  }
}
