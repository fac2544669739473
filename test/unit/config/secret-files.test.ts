import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { withSecretFiles } from '../../../src/config/environment.js';

describe('secrets in files', () => {
  let folder: string;

  before(() => (folder = mkdtempSync(path.join(tmpdir(), 'chronos-secrets-'))));
  after(() => {
    rmSync(folder, { recursive: true });
  });

  function file(content: string): string {
    const name = path.join(folder, 'secret');
    writeFileSync(name, content);
    return name;
  }

  it('are read without the final line break', () => {
    const environment = { A_FILE: file('mongodb://host/app\n'), B: 'b', C_FILE: 'unread' };
    const problems: string[] = [];
    const read = withSecretFiles(environment, ['A', 'B'], problems);
    assert.deepEqual(read, { ...environment, A: 'mongodb://host/app' });
    assert.deepEqual(problems, []);
  });

  it('are rejected if the variable itself is set, and if they are missing or empty', () => {
    const assertRejected = (environment: Record<string, string>, message: RegExp): void => {
      const problems: string[] = [];
      withSecretFiles(environment, ['A'], problems);
      assert.match(problems.join(), message);
    };
    assertRejected({ A: 'a', A_FILE: file('a') }, /A and A_FILE are both set/);
    assertRejected({ A_FILE: path.join(folder, 'none') }, /A_FILE names a file that cannot be read/);
    assertRejected({ A_FILE: file(' \n') }, /A_FILE names a file that is empty/);
  });

  it('are ignored if the name of the file is empty', () => {
    assert.deepEqual(withSecretFiles({ A_FILE: '', A: 'a' }, ['A'], []), { A_FILE: '', A: 'a' });
  });
});
