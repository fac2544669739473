import assert from 'node:assert/strict';
import { parseShellPayload } from '../../../../src/handlers/built-in/shell.js';

const refuses = (payload: unknown, message: RegExp): void =>
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

  it('is a text for a shell only when it is requested explicitly', () => {
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

  it('is otherwise rejected with what is expected', () => {
    for (const payload of [null, undefined, 7, true, []])
      refuses(payload, /^payload must be .* Expected: \['file'/);
    refuses({}, /^payload\.file is missing/);
    refuses({ args: ['-la'] }, /^payload\.file is missing/);
    refuses([''], /^payload\[0\] must not be empty/);
    refuses({ file: '' }, /^payload\.file must not be empty/);
    refuses({ shell: '' }, /^payload\.shell must not be empty/);
    refuses({ file: 'ls', cwd: '' }, /^payload\.cwd must not be empty/);
  });

  it('has only strings as arguments', () => {
    refuses(['ls', 7], /^payload\[1\] must be a string, got number/);
    refuses(['ls', ['-la']], /^payload\[1\] must be a string, got an array/);
    refuses([null], /^payload\[0\] must be a string, got null/);
    refuses(
      { file: 'ls', args: '-la' },
      /^payload\.args must be a list of strings, got a value of type string/,
    );
    refuses({ file: 'ls', args: [{}] }, /^payload\.args\[0\] must be a string/);
    refuses({ file: ['ls'] }, /^payload\.file must be a string, got an array/);
    refuses({ shell: ['ls'] }, /^payload\.shell must be a string, got an array/);
  });

  it('has only strings as variables, with valid names', () => {
    refuses({ file: 'ls', env: { A: 1 } }, /^payload\.env\.A must be a string/);
    refuses({ file: 'ls', env: ['A'] }, /^payload\.env must be an object of strings, got a list/);
    refuses({ file: 'ls', env: { '': 'x' } }, /is not a valid variable name/);
    refuses({ file: 'ls', env: { 'A=B': 'x' } }, /is not a valid variable name/);
    refuses({ file: 'ls', env: { CHRONOS_FENCE: '9' } }, /^payload\.env\.CHRONOS_FENCE is set by Chronos/);
  });

  it('has no NUL characters, and a text with one is not shown', () => {
    for (const payload of [
      ['ls\0'],
      ['ls', 'hush\0'],
      { file: 'ls\0' },
      { shell: 'hush\0' },
      { file: 'ls', cwd: '/\0' },
      { file: 'ls', env: { A: 'hush\0' } },
    ]) {
      refuses(payload, /without NUL characters/);
      refuses(payload, /^(?!.*hush)/);
    }
    refuses({ file: 'ls', env: { 'A\0': 'x' } }, /is not a valid variable name/);
  });

  it('has no unknown keys', () => {
    refuses({ fiel: 'ls' }, /^payload\.fiel is not an option \(did you mean 'file'\?\)/);
    refuses({ file: 'ls', shell: 'ls' }, /^payload\.file cannot be combined with payload\.shell/);
    refuses({ shell: 'ls', args: ['-la'] }, /^payload\.args cannot be combined with payload\.shell/);
  });

  it('is rejected with all problems at once', () => {
    refuses(
      { file: 7, args: 'x', what: 1 },
      /payload\.file must .*; payload\.args must .*; payload\.what is not/,
    );
  });
});
