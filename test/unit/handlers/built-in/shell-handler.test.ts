import assert from 'node:assert/strict';
import { shellHandler } from '../../../../src/handlers/built-in/shell.js';
import { aJobContext } from '../../../support/handlers/job-context.js';

const environment = { PATH: process.env['PATH'] ?? '' };

async function run(payload: unknown, ...files: string[]): Promise<unknown> {
  return shellHandler({ files, variables: ['REPORT_DATE'], environment })(payload, aJobContext());
}

const assertRejected = (payload: unknown, files: string[], message: RegExp): Promise<void> =>
  assert.rejects(run(payload, ...files), { code: 'SHELL_REFUSED', message });

describe('shellHandler [D2]', () => {
  it('runs a file that is on the list', async () => {
    const result = { exitCode: 0, stdout: 'hello\n', stderr: '', cut: false };
    assert.deepEqual(await run(['/bin/echo', 'hello'], '/bin/true', '/bin/echo'), result);
    assert.deepEqual(
      await run({ file: '/bin/echo', args: ['hello'], env: { REPORT_DATE: 'x' } }, '/bin/echo'),
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

  it('rejects variables that are not on the list, because they can make an allowed file run other code', async () => {
    for (const name of [
      ...['LD_PRELOAD', 'PATH', 'HOME', 'NODE_OPTIONS', 'BASH_ENV', 'BASH_FUNC_echo%%', 'GIT_SSH_COMMAND'],
      ...['RSYNC_RSH', 'TAR_OPTIONS', 'MAKEFLAGS', 'OPENSSL_CONF', 'https_proxy', 'IFS', 'OTHER'],
      ...['report_date', 'REPORT_DATE2', 'constructor'],
    ]) {
      await assertRejected(
        { file: '/bin/echo', env: { REPORT_DATE: '1', [name]: 'x' } },
        ['/bin/echo'],
        new RegExp(`must not set ${name}.*the Scheduler option shellPayloadEnv$`),
      );
    }
    for (const name of ['REPORT_DATE', 'LANG', 'LC_ALL', 'TZ']) {
      const { stdout } = (await run({ file: '/usr/bin/env', env: { [name]: 'x' } }, '/usr/bin/env')) as {
        stdout: string;
      };
      assert.ok(stdout.split('\n').includes(`${name}=x`));
    }
  });

  it('reports a malformed payload before anything runs', () =>
    assert.rejects(run({ file: '/bin/echo', args: 'hello' }, '/bin/echo'), { code: 'INVALID_PAYLOAD' }));
});
