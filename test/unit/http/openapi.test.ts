import assert from 'node:assert/strict';
import { resolveDispatchOptions } from '../../../src/config/dispatch-options.js';
import { parseScheduleQuery } from '../../../src/config/method-options.js';
import { parseJobQuery } from '../../../src/config/query-options.js';
import { ROUTES } from '../../../src/http/api.js';
import type { JsonSchema } from '../../../src/domain/validation.js';

describe('request schemas', () => {
  const find = (operationId: string): (typeof ROUTES)[number] => {
    const route = ROUTES.find((candidate) => candidate.operationId === operationId);
    assert.ok(route, operationId);
    return route;
  };
  const maximum = (schema: JsonSchema | undefined): number => schema?.maximum ?? Infinity;

  it('allow as many attempts as the options do', () => {
    const max = maximum(find('dispatchJob').body?.properties?.['retries']?.properties?.['max']);
    assert.equal(max, 1000);
    assert.equal(maximum(find('addSchedule').body?.properties?.['retries']?.properties?.['max']), max);
    assert.equal(resolveDispatchOptions({ retries: { max } }, 'UTC').retries?.max, max);
    assert.throws(() => resolveDispatchOptions({ retries: { max: max + 1 } }, 'UTC'), /from 1 to 1000/);
  });

  it('allow pages as large as the options do', () => {
    for (const operation of [
      'listJobs',
      'listDead',
      'listExecutions',
      'listAudit',
      'listSchedules',
      'listSkips',
    ])
      assert.equal(maximum(find(operation).query?.properties?.['limit']), 200, operation);
    assert.equal(parseJobQuery({ limit: 200 }, 'query').limit, 200);
    assert.equal(parseScheduleQuery({ limit: 200 }).limit, 200);
    assert.throws(() => parseJobQuery({ limit: 201 }, 'query'), /from 1 to 200/);
    assert.throws(() => parseScheduleQuery({ limit: 201 }), /from 1 to 200/);
  });
});
