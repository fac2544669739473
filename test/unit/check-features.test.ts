import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

import { checkFeatures } from '../../scripts/check-features.js';

const page = readFileSync(new URL('../../docs/features.md', import.meta.url), 'utf8').replaceAll(
  '| done |',
  '| open |',
);

function withState(id: string, state: string): string {
  return page.replace(new RegExp(`^(\\| ${id} \\|.*\\| )open( \\|)`, 'm'), `$1${state}$2`);
}

/** Put together here, so that the checker does not find these titles in this file. */
function test(title: string, { block = 'it', quote = "'" } = {}): string {
  return `${block}(${quote}${title}${quote}, () => {});`;
}

describe('checkFeatures', () => {
  it('finds no fault in a page whose rows are all open', () => {
    assert.deepEqual(checkFeatures(page, []), []);
  });

  it('wants a test title for each row that is done', () => {
    const done = withState('C2', 'done');
    assert.deepEqual(checkFeatures(done, []), ['C2: is called done, but no test title names it']);
    assert.deepEqual(checkFeatures(done, [test('C2 two workers never get the same job')]), []);
  });

  it('reads several ids of one title, in every kind of quote and block', () => {
    const done = withState('J8', 'done').replace(/^(\| J10 \|.*\| )open/m, '$1done');
    for (const block of ['it', 'describe', 'it.only']) {
      for (const quote of ["'", '"', '`', "\n  '"]) {
        assert.deepEqual(checkFeatures(done, [test('J8 J10 retries in order', { block, quote })]), []);
      }
    }
  });

  it('does not count a skipped test', () => {
    assert.equal(checkFeatures(withState('C2', 'done'), [test('C2 …', { block: 'it.skip' })]).length, 1);
  });

  it('does not take an id in the middle of a title for a claim', () => {
    assert.equal(checkFeatures(withState('C2', 'done'), [test('claims as C2 says')]).length, 1);
  });

  it('names missing, repeated and unknown rows', () => {
    const row = /^\| C3 \|.*\n/m;
    assert.deepEqual(checkFeatures(page.replace(row, ''), []), ['C3: has no row']);
    assert.deepEqual(checkFeatures(page.replace(row, '$&$&'), []), ['C3: has more than one row']);
    assert.deepEqual(checkFeatures(`${page}| Q1 | | open | |\n`, []), ['Q1: is not a feature that exists']);
  });

  it('refuses a state that is neither done nor open', () => {
    assert.deepEqual(checkFeatures(withState('C4', 'soon'), []), [
      'C4: its state is "soon", expected "done" or "open"',
    ]);
  });

  it('names ids in test titles that do not exist', () => {
    assert.deepEqual(checkFeatures(page, [test('C99 flies')]), [
      'C99: is named by a test title, but is not a feature that exists',
    ]);
  });

  it('lists every fault in one go', () => {
    assert.equal(checkFeatures('', [test('C99 flies')]).length, 92);
  });
});
