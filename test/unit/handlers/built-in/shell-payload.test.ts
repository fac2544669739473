import assert from 'node:assert/strict';
import { parseShellPayload } from '../../../../src/handlers/built-in/shell.js';

const assertInvalid = (payload: unknown, message: RegExp): void =>
  assert.throws(() => parseShellPayload(payload), { code: 'INVALID_PAYLOAD', message });

describe('the payload of a shell job [D2]', () => {
  it('is a list of the file and its arguments', () => {
    assert.deepEqual(parseShellPayload(['ls', '-la', '']), { file: 'ls', args: ['-la', ''] });
    assert.deepEqual(parseShellPayload(['ls']), { file: 'ls', args: [] });
  });

  it('is an object with the file and optional arguments, directory and variables', () => {
    assert.deepEqual(parseShellPayload({ file: 'ls' }), { file: 'ls', args: [] });
    const whole = { file: 'ls', args: ['-la'], cwd: '/tmp', env: { A: '1', B: '' } };
    assert.deepEqual(parseShellPayload(whole), whole);
    assert.deepEqual(parseShellPayload({ file: 'ls', args: [] }), { file: 'ls', args: [] });
  });

  it('is a shell command line only when that is requested explicitly', () => {
    assert.deepEqual(parseShellPayload({ shell: 'ls | wc -l', cwd: '/tmp' }), {
      file: '/bin/sh',
      args: ['-c', 'ls | wc -l'],
      cwd: '/tmp',
    });
  });

  it('is never a plain string', () => {
    for (const text of ['ls -la', '', '/bin/ls']) {
      assert.throws(() => parseShellPayload(text), {
        code: 'SHELL_REFUSED',
        message: /plain string.*\['ls', '-la'\].*\{ shell: 'ls -la \| wc -l' \}/,
      });
    }
  });

  it('is otherwise rejected with a description of what is expected', () => {
    for (const payload of [null, undefined, 7, true, []])
      assertInvalid(payload, /^payload must be .* Expected: \['file'/);
    assertInvalid({}, /^payload\.file is missing/);
    assertInvalid({ args: ['-la'] }, /^payload\.file is missing/);
    assertInvalid([''], /^payload\[0\] must not be empty/);
    assertInvalid({ file: '' }, /^payload\.file must not be empty/);
    assertInvalid({ shell: '' }, /^payload\.shell must not be empty/);
    assertInvalid({ file: 'ls', cwd: '' }, /^payload\.cwd must not be empty/);
  });

  it('has only strings as arguments', () => {
    assertInvalid(['ls', 7], /^payload\[1\] must be a string, got number/);
    assertInvalid(['ls', ['-la']], /^payload\[1\] must be a string, got an array/);
    assertInvalid([null], /^payload\[0\] must be a string, got null/);
    assertInvalid(
      { file: 'ls', args: '-la' },
      /^payload\.args must be a list of strings, got a value of type string/,
    );
    assertInvalid({ file: 'ls', args: [{}] }, /^payload\.args\[0\] must be a string/);
    assertInvalid({ file: ['ls'] }, /^payload\.file must be a string, got an array/);
    assertInvalid({ shell: ['ls'] }, /^payload\.shell must be a string, got an array/);
  });

  it('has only strings as variables, with valid names', () => {
    assertInvalid({ file: 'ls', env: { A: 1 } }, /^payload\.env\.A must be a string/);
    assertInvalid({ file: 'ls', env: ['A'] }, /^payload\.env must be an object of strings, got a list/);
    assertInvalid({ file: 'ls', env: { '': 'x' } }, /is not a valid variable name/);
    assertInvalid({ file: 'ls', env: { 'A=B': 'x' } }, /is not a valid variable name/);
    assertInvalid(
      { file: 'ls', env: { CHRONOS_FENCE: '9' } },
      /^payload\.env\.CHRONOS_FENCE is set by Chronos/,
    );
  });

  it('has no NUL characters, and the error does not show the rejected string', () => {
    for (const payload of [
      ['ls\0'],
      ['ls', 'hush\0'],
      { file: 'ls\0' },
      { shell: 'hush\0' },
      { file: 'ls', cwd: '/\0' },
      { file: 'ls', env: { A: 'hush\0' } },
    ]) {
      assertInvalid(payload, /without NUL characters/);
      assertInvalid(payload, /^(?!.*hush)/);
    }
    assertInvalid({ file: 'ls', env: { 'A\0': 'x' } }, /is not a valid variable name/);
  });

  it('has no unknown keys', () => {
    assertInvalid({ fiel: 'ls' }, /^payload\.fiel is not an option \(did you mean 'file'\?\)/);
    assertInvalid({ file: 'ls', shell: 'ls' }, /^payload\.file cannot be combined with payload\.shell/);
    assertInvalid({ shell: 'ls', args: ['-la'] }, /^payload\.args cannot be combined with payload\.shell/);
  });

  it('is rejected with all problems at once', () => {
    assertInvalid(
      { file: 7, args: 'x', what: 1 },
      /payload\.file must .*; payload\.args must .*; payload\.what is not/,
    );
  });
});
