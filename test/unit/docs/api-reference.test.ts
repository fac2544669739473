import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { apiReference } from '../../../scripts/docs/api.js';

describe('the reference of docs/api.md', () => {
  let root: string;
  before(() => (root = `${realpathSync(mkdtempSync(path.join(tmpdir(), 'chronos-api-')))}/`));
  after(() => rmSync(root, { recursive: true }));

  /** The reference of a package whose index.ts exports from parts.ts. */
  function referenceOf(index: string, parts: string): string {
    writeFileSync(path.join(root, 'index.ts'), index);
    writeFileSync(path.join(root, 'parts.ts'), parts);
    return apiReference([{ file: 'index.ts' }], root);
  }

  it('names every export without a TSDoc comment, and its file', () => {
    const parts = `
      export interface Silent { a: string }
      /** Has one. */
      export interface Documented { a: string }
      export const mute = 1;`;
    assert.throws(
      () => referenceOf(`// All\nexport { type Silent, type Documented, mute } from './parts.js';`, parts),
      { message: /need a TSDoc comment of one sentence: Silent \(parts\.ts\), mute \(parts\.ts\)$/ },
    );
  });

  it('groups exports by the comments of the index, in their order', () => {
    const parts = '/** One. */\nexport type One = 1;\n/** Two. */\nexport type Two = 2;';
    const index = [
      '// Everything here is public.',
      '',
      '// Second things',
      "export type { Two } from './parts.js';",
      '// First things',
      "export type { One } from './parts.js';",
    ];
    const headings = referenceOf(index.join('\n'), parts).match(/^#+ .*$/gm);
    assert.deepEqual(headings, ['### Second things', '#### Two', '### First things', '#### One']);
  });

  it('lists the public members of a class with signatures and comments, and no implementation', () => {
    const reference = referenceOf(
      `// All\nexport { Machine } from './parts.js';`,
      `/** Does work. */
      export class Machine<T extends object = object> extends Error {
        readonly size = 3;
        #secret = 1;
        constructor(input: T) { super(String(input)); }
        /** Runs <fast>
         * or not at all.
         *
         * Details follow. */
        run(times?: number): Promise<string | null>;
        run(mode: 'all'): Promise<string | null>;
        run(): Promise<string | null> { return Promise.resolve(null); }
        count(limit = 10) { return limit + this.#secret; }
        private hidden(): void {}
      }`,
    );
    assert.deepEqual(reference.split('\n').slice(4), [
      '`class Machine<T extends object = object> extends Error`: Does work.',
      '',
      '| member | meaning |',
      '|---|---|',
      '| `new Machine(input: T)` |  |',
      '| `readonly size: 3` |  |',
      '| `run(times?: number): Promise<string \\| null>` | Runs &lt;fast> or not at all. |',
      "| `run(mode: 'all'): Promise<string \\| null>` |  |",
      '| `count(limit?: number): number` |  |',
    ]);
  });

  it('lists the members of a type that is derived from an internal one, and describes internal types that it names', () => {
    const reference = referenceOf(
      `// All\nexport type { View } from './parts.js';`,
      `interface Stored {
        _id: string;
        /** Why it waits. */
        held: Hold | null;
      }
      interface Hold { reason: string }
      /** What people see. */
      export type View = Omit<Stored, '_id'> & { id: string };`,
    );
    assert.match(reference, /`type View`: What people see\./);
    assert.match(reference, /\| `held: Hold \\\| null` \| Why it waits\. \|\n\| `id: string` \| {2}\|/);
    assert.match(
      reference,
      /### Other types\n\n.*\n\n#### Hold\n\n`interface Hold`\n\n.*\n.*\n\| `reason: string` \|/,
    );
    assert.doesNotMatch(reference, /_id|#### Stored/);
  });
});
