import assert from 'node:assert/strict';
import { shellHandler } from '../../../../src/handlers/built-in/shell.js';
import { aJobContext } from '../../../support/handlers/job-context.js';

const environment = { PATH: process.env['PATH'] };

async function run(payload: unknown, ...files: string[]): Promise<unknown> {
  return shellHandler({ files, environment })(payload, aJobContext());
}

const assertRejected = (payload: unknown, files: string[], message: RegExp): Promise<void> =>
  assert.rejects(run(payload, ...files), { code: 'SHELL_REFUSED', message });

describe('shellHandler [D2]', () => {
  it('runs a file that is on the list', async () => {
    const result = { exitCode: 0, stdout: 'hello\n', stderr: '', cut: false };
    assert.deepEqual(await run(['/bin/echo', 'hello'], '/bin/true', '/bin/echo'), result);
    assert.deepEqual(
      await run({ file: '/bin/echo', args: ['hello'], env: { NODE_ENV: 'x' } }, '/bin/echo'),
      result,
    );
  });

  it('rejects other files and explains how to allow them', async () => {
    await assertRejected(
      ['/bin/echo', 'hello'],
      [],
      /may not run '\/bin\/echo'.*the Scheduler option shellFiles$/,
    );
    await assertRejected(['/bin/echo'], ['/bin/ech', '/bin/echoes', '/bin', '/bin/'], /shellFiles/);
  });

  it('compares whole paths as they are written', async () => {
    for (const file of [
      'echo',
      './echo',
      '../bin/echo',
      '/bin/../bin/echo',
      '/bin/./echo',
      '//bin/echo',
      '/bin//echo',
      '/tmp/../bin/echo',
    ]) {
      await assertRejected([file], ['/bin/echo', 'echo', file], /is not a normalized absolute path/);
    }
    await assertRejected(['/bin/echo/'], ['/bin/echo'], /shellFiles/);
    await assertRejected(['/BIN/echo'], ['/bin/echo'], /shellFiles/);
    await assertRejected([' /bin/echo'], ['/bin/echo'], /absolute/);
  });

  it('runs a shell command line only when the shell is on the list', async () => {
    await assertRejected({ shell: '/bin/echo hello' }, ['/bin/echo'], /'\/bin\/sh'/);
    await assertRejected(['/bin/sh', '-c', 'id'], ['/bin/echo'], /'\/bin\/sh'/);
    assert.deepEqual(await run({ shell: 'echo hello' }, '/bin/sh'), {
      exitCode: 0,
      stdout: 'hello\n',
      stderr: '',
      cut: false,
    });
  });

  it('rejects a plain string whatever is on the list', () =>
    assertRejected('/bin/echo', ['/bin/echo'], /plain string/));

  it('rejects variables that make an allowed file run other code', async () => {
    for (const name of [
      ...['LD_PRELOAD', 'LD_LIBRARY_PATH', 'LD_AUDIT', 'DYLD_INSERT_LIBRARIES', 'PATH', 'HOME'],
      ...['NODE_OPTIONS', 'NODE_PATH', 'BASH_ENV', 'BASH_FUNC_echo%%', 'ENV', 'PYTHONPATH', 'PYTHONSTARTUP'],
      ...['PERL5OPT', 'RUBYOPT', 'GIT_SSH_COMMAND', 'JAVA_TOOL_OPTIONS', 'ld_preload', 'npm_config_prefix'],
    ]) {
      await assertRejected(
        { file: '/bin/echo', env: { OK: '1', [name]: 'x' } },
        ['/bin/echo'],
        /must not set/,
      );
    }
    for (const name of ['OK', 'MY_PATH', 'PATHS', 'NODE_ENV', 'LANG', 'OLD_LD_PRELOAD']) {
      await run({ file: '/bin/echo', env: { [name]: 'x' } }, '/bin/echo');
    }
  });

  it('reports a malformed payload before anything runs', () =>
    assert.rejects(run({ file: '/bin/echo', args: 'hello' }, '/bin/echo'), { code: 'INVALID_PAYLOAD' }));
});
