import assert from 'node:assert/strict';
import { generatePages } from '../../../scripts/docs/pages.js';
import { read } from '../../support/deploy-files.js';

describe('the generated pages', () => {
  it('match the code (npm run docs updates them)', async () => {
    for (const { path, current, expected } of await generatePages())
      assert.equal(current, expected, `${path.pathname} is out of date`);
  });
});

describe('docs/api.md', () => {
  it('lists every code of a ChronosError', () => {
    const codes = [...read('src/domain/errors.ts').matchAll(/^ {2}\| '([A-Z_]+)'/gm)].map(
      ([, code = '']) => code,
    );
    assert.ok(codes.length > 10);
    const page = read('docs/api.md');
    assert.deepEqual(
      codes.filter((code) => !page.includes(`\`${code}\``)),
      [],
    );
  });
});
