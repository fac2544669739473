import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { checkFeatures, fixShownBy, type TestFile } from '../../../scripts/check-features.js';

/** The real page with every row open and no files listed. */
const page = fixShownBy(
  readFileSync(new URL('../../../docs/features.md', import.meta.url), 'utf8').replaceAll(
    '| done |',
    '| open |',
  ),
  [],
);

function withState(id: string, state: string): string {
  return page.replace(new RegExp(`^(\\| ${id} \\|.*\\| )open( \\|)`, 'm'), `$1${state}$2`);
}

/** Builds the source of a test, because the check would find a complete title in this file. */
function testFile(title: string, { block = 'it', quote = "'", path = 'unit/a.test.ts' } = {}): TestFile {
  return { path, source: `${block}(${quote}${title}${quote.trim()}, () => {});` };
}

describe('checkFeatures', () => {
  it('accepts a page whose rows are all open', () => {
    assert.deepEqual(checkFeatures(page, []), []);
  });

  it('requires a test with the tag of each row that is done', () => {
    const done = withState('C2', 'done');
    assert.deepEqual(checkFeatures(done, []), ['C2: is marked done, but no test title ends with [C2]']);
    assert.deepEqual(checkFeatures(done, [testFile('two workers never get the same job [C2]')]), []);
  });

  it('reads several tags of one title, in every kind of quote and block', () => {
    const done = withState('J8', 'done').replace(/^(\| J10 \|.*\| )open/m, '$1done');
    for (const block of ['it', 'describe', 'it.only']) {
      for (const quote of ["'", '"', '`', "\n  '"]) {
        assert.deepEqual(
          checkFeatures(done, [testFile('retries in order [J8] [J10]', { block, quote })]),
          [],
        );
      }
    }
  });

  it('does not count a skipped test', () => {
    assert.equal(
      checkFeatures(withState('C2', 'done'), [testFile('… [C2]', { block: 'it.skip' })]).length,
      1,
    );
  });

  it('ignores an id that is not a tag at the end of the title', () => {
    for (const title of ['claims as C2 says', '[C2] claims', 'claims [C2] once', 'claims once C2'])
      assert.equal(checkFeatures(withState('C2', 'done'), [testFile(title)]).length, 1, title);
  });

  it('reports missing, repeated and unknown rows', () => {
    const row = /^\| C3 \|.*\n/m;
    assert.deepEqual(checkFeatures(page.replace(row, ''), []), ['C3: has no row']);
    assert.deepEqual(checkFeatures(page.replace(row, '$&$&'), []), ['C3: has more than one row']);
    assert.deepEqual(checkFeatures(`${page}| Q1 | | open | |\n`, []), ['Q1: there is no such feature']);
  });

  it('reports a state that is neither done nor open', () => {
    assert.deepEqual(checkFeatures(withState('C4', 'soon'), []), [
      'C4: its state is "soon", expected "done" or "open"',
    ]);
  });

  it('reports tags of features that do not exist', () => {
    assert.deepEqual(checkFeatures(page, [testFile('flies [C99]')]), [
      'C99: is the tag of a test, but there is no such feature',
    ]);
  });

  it('reports a listed file that has no test with the tag of the row', () => {
    const tests = [testFile('claims once [C2]', { path: 'unit/claim.test.ts' })];
    const fixed = fixShownBy(withState('C2', 'done'), tests);
    assert.match(fixed, /^\| C2 \|.*\| done \| `unit\/claim\.test\.ts` \|$/m);
    assert.deepEqual(checkFeatures(fixed, tests), []);

    const moved = tests.map((file) => ({ ...file, path: 'unit/moved.test.ts' }));
    assert.deepEqual(checkFeatures(fixed, moved), [
      'C2: unit/claim.test.ts has no test tagged [C2] (npm run check:features -- --fix)',
    ]);
  });

  it('reports every problem at once', () => {
    assert.equal(checkFeatures('', [testFile('flies [C99]')]).length, 114);
  });
});
