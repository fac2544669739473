import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inheritedEnvironment } from '../../../../src/config/process-env.js';
import { parseShellPayload, runShell, type ShellResult } from '../../../../src/handlers/built-in/shell.js';
import type { JobContext } from '../../../../src/domain/job/handler.js';
import { monotonic, systemClock } from '../../../../src/runtime/system-clock.js';
import { aJobContext } from '../../../support/handlers/job-context.js';
import { isDead } from '../../../support/handlers/processes.js';

const PATH = process.env['PATH'] ?? '';
const run = (payload: unknown, job: JobContext = aJobContext()): Promise<ShellResult> =>
  runShell(parseShellPayload(payload), job, { PATH });

/** A shell command that waits until the file is not empty. */
const waitForFile = (file: string): string => `while [ ! -s ${file} ]; do sleep 0.02; done`;

describe('runShell [D2]', () => {
  let directory: string;
  before(async () => (directory = await mkdtemp(path.join(tmpdir(), 'chronos-shell-'))));
  after(() => rm(directory, { recursive: true }));

  it('returns the output', async () => {
    assert.deepEqual(await run(['printf', 'one\\ntwo']), {
      exitCode: 0,
      stdout: 'one\ntwo',
      stderr: '',
      cut: false,
    });
    assert.deepEqual(await run({ shell: 'echo grüße >&2' }), {
      exitCode: 0,
      stdout: '',
      stderr: 'grüße\n',
      cut: false,
    });
  });

  it('lets no shell interpret the arguments', async () => {
    const { stdout } = await run(['echo', '$HOME', '`id`', '; id', '*']);
    assert.equal(stdout, '$HOME `id` ; id *\n');
  });

  it('runs a shell command line when that is requested', async () => {
    assert.equal((await run({ shell: 'printf "a\\nb\\n" | wc -l' })).stdout.trim(), '2');
  });

  it('runs in the requested directory', async () => {
    assert.equal((await run({ file: 'pwd', args: ['-P'], cwd: '/' })).stdout, '/\n');
  });

  it('has an empty stdin', async () => {
    assert.equal((await run(['cat'])).stdout, '');
  });

  it('keeps the secrets of the worker from the child', async () => {
    const command = parseShellPayload({ file: 'env', env: { EXTRA: 'yes', LANG: 'C' } });
    const environment = {
      PATH,
      HOME: '/home/ada',
      LANG: 'de_DE.UTF-8',
      LC_ALL: 'C',
      TZ: 'UTC',
      TMPDIR: '/tmp',
      MONGODB_URI: 'mongodb://user:secret@host/app',
      AWS_SECRET_ACCESS_KEY: 'secret',
      NODE_OPTIONS: '--no-warnings',
      BACKUP_DIR: '/backup',
    };
    const inherited = inheritedEnvironment(['BACKUP_DIR', 'NOT_SET'], environment);
    const { stdout } = await runShell(command, aJobContext({ id: 'report@grün 1', fence: 12 }), inherited);
    assert.deepEqual(stdout.trimEnd().split('\n').sort(), [
      'BACKUP_DIR=/backup',
      'CHRONOS_FENCE=12',
      'CHRONOS_JOB_ID=report@grün 1',
      'EXTRA=yes',
      'HOME=/home/ada',
      'LANG=C',
      'LC_ALL=C',
      `PATH=${PATH}`,
      'TMPDIR=/tmp',
      'TZ=UTC',
    ]);
  });

  it('leaves out variables that the worker does not have', async () => {
    const { stdout } = await runShell({ file: '/usr/bin/env', args: [] }, aJobContext(), {});
    assert.equal(stdout, 'CHRONOS_JOB_ID=job-1\nCHRONOS_FENCE=7\n');
  });

  describe('with much output', () => {
    const megabytes = 50;

    it('keeps the first part, discards the rest and logs that', async () => {
      const job = aJobContext();
      const { stdout, cut } = await run(
        { shell: `echo first; head -c ${megabytes}000000 /dev/zero | tr '\\0' x` },
        job,
      );
      assert.equal(stdout.length, 64 * 1024);
      assert.match(stdout, /^first\nx+$/);
      assert.equal(cut, true);
      assert.deepEqual(job.lines, [
        `stdout was truncated: its last ${megabytes * 1e6 + 6 - 64 * 1024} bytes are not stored`,
      ]);
    });

    it('truncates stdout and stderr independently', async () => {
      const writer = "head -c 3000000 /dev/zero | tr '\\0' x";
      const { stdout, stderr, cut } = await run({ shell: `${writer} & ${writer} >&2; wait` });
      assert.deepEqual([stdout.length, stderr.length, cut], [64 * 1024, 64 * 1024, true]);
    });

    it('shows the end of stderr when the command fails', async () => {
      const error = await run({
        shell: "head -c 300000 /dev/zero | tr '\\0' '\\n' >&2; echo a >&2; echo the reason >&2; exit 3",
      }).catch((thrown: unknown) => thrown as Error);
      assert.ok(error instanceof Error);
      assert.match(error.message, /code 3.*\n… a\nthe reason$/s);
      assert.ok(error.message.length < 2500);
    });
  });

  describe('fails', () => {
    it('with the exit code and the end of stderr', async () => {
      await assert.rejects(run({ shell: 'echo hm >&2; echo no such luck >&2; exit 42' }), {
        code: 'SHELL_FAILED',
        message: "'/bin/sh' exited with code 42, expected 0; the end of its stderr:\nhm\nno such luck",
      });
      await assert.rejects(run(['false']), {
        code: 'SHELL_FAILED',
        message: "'false' exited with code 1, expected 0; it wrote nothing to stderr",
      });
    });

    it('with the signal that killed it', async () => {
      await assert.rejects(run({ shell: 'kill -SEGV $$' }), {
        code: 'SHELL_FAILED',
        message: /^'\/bin\/sh' was killed by SIGSEGV/,
      });
    });

    it('and redacts a password that the command printed', async () => {
      await assert.rejects(run({ shell: 'echo mongodb://me:hush@host/ >&2; exit 1' }), {
        message: /mongodb:\/\/\*\*\*@host/,
      });
    });

    it('when the file does not exist', async () => {
      await assert.rejects(run(['/no/such/file']), {
        code: 'SHELL_FAILED',
        message: "cannot start '/no/such/file': there is no such file on this worker (ENOENT)",
      });
    });

    it('when the directory does not exist', async () => {
      await assert.rejects(run({ file: 'ls', cwd: '/no/such/directory' }), {
        code: 'SHELL_FAILED',
        message: /^cannot start 'ls' in '\/no\/such\/directory': .* or no such directory/,
      });
    });

    it('when the file cannot be executed', async () => {
      const file = path.join(directory, 'plain-text');
      await writeFile(file, 'echo hello');
      await chmod(file, 0o644);
      for (const unexecutable of [file, directory]) {
        await assert.rejects(run([unexecutable]), {
          code: 'SHELL_FAILED',
          message: /may not execute it.*\(EACCES\)$/,
        });
      }
    });

    it('when the system does not accept the arguments', async () => {
      await assert.rejects(run(['echo', 'x'.repeat(20_000_000)]), {
        code: 'SHELL_FAILED',
        message: /^cannot start 'echo': .*E2BIG/,
      });
    });
  });

  describe('when the command leaves processes behind', () => {
    afterEach(() => (systemClock.monotonic = monotonic));

    it('waits a moment for their output', async () => {
      // Stops the time limit, which a busy machine might exceed.
      systemClock.monotonic = () => 0;
      const { stdout } = await run({ shell: '(sleep 0.1; echo late) & echo early' });
      assert.equal(stdout, 'early\nlate\n');
    });

    it('terminates them, whether they hold the pipes or not', async () => {
      for (const redirect of ['', '>/dev/null 2>&1']) {
        const { stdout } = await run({ shell: `sleep 300 ${redirect} & echo $!` });
        assert.ok(await isDead(Number(stdout)), `with '${redirect}'`);
      }
    });

    it('kills those that ignore SIGTERM', async () => {
      const { stdout } = await run({
        shell: `sh -c 'trap "" TERM; echo $$ | tee pid; while :; do sleep 1; done' & ${waitForFile('pid')}`,
        cwd: directory,
      });
      assert.ok(await isDead(Number(stdout)));
    });

    it('terminates them also when the command has failed', async () => {
      const error = await run({ shell: 'sleep 300 & echo $! >&2; exit 1' }).catch(
        (thrown: unknown) => thrown as Error,
      );
      assert.ok(error instanceof Error);
      assert.ok(await isDead(Number(/\n(\d+)$/.exec(error.message)?.[1])));
    });

    it('does not wait for a daemon that has left the group', async () => {
      const { stdout } = await run({
        shell: `setsid sh -c 'echo $$ | tee daemon; exec sleep 300' & ${waitForFile('daemon')}`,
        cwd: directory,
      });
      const daemon = Number(stdout);
      assert.equal(await isDead(daemon), false);
      process.kill(daemon, 'SIGKILL');
    });
  });

  it('leaves no listeners on the process', async () => {
    const before = process.listenerCount('exit');
    await Promise.all(Array.from({ length: 15 }, () => run(['true'])));
    await run(['false']).catch(() => undefined);
    assert.equal(process.listenerCount('exit'), before);
  });

  it('starts nothing for a job whose signal is already aborted', async () => {
    const file = path.join(directory, 'never');
    const reason = new Error('too late');
    await assert.rejects(run(['touch', file], aJobContext({ signal: AbortSignal.abort(reason) })), reason);
    await assert.rejects(stat(file), { code: 'ENOENT' });
  });
});
