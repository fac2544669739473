import assert from 'node:assert/strict';
import { generatePages } from '../../scripts/docs/pages.js';

describe('docs', () => {
  it('show the options and transitions of the code (npm run docs writes them)', async () => {
    for (const { path, current, expected } of await generatePages())
      assert.equal(current, expected, `${path.pathname} is out of date`);
  });
});
