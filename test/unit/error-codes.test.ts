import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

describe('docs/api.md', () => {
  it('lists every code of a ChronosError', async () => {
    const source = await readFile(new URL('../../src/domain/errors.ts', import.meta.url), 'utf8');
    const page = await readFile(new URL('../../docs/api.md', import.meta.url), 'utf8');
    const codes = [...source.matchAll(/^ {2}\| '([A-Z_]+)'/gm)].map(([, code]) => code ?? '');
    assert.ok(codes.length > 10);
    assert.deepEqual(
      codes.filter((code) => !page.includes(`\`${code}\``)),
      [],
    );
  });
});
