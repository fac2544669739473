import assert from 'node:assert/strict';
import type { ChronosError, JobView } from '../../../../src/index.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { nextEvent } from '../../../support/events.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { runJob, runStoredSchedule } from '../../../support/handlers/job-outcomes.js';

const MINUTE = 60_000;
const NODE = process.execPath;
const print = (text: string): string[] => [NODE, '-e', `console.log(${JSON.stringify(text)})`];

describe('built-in handlers', () => {
  const database = useSharedDatabase();

  const code = ({ error }: JobView): string | null | undefined => error?.code;

  describe('shell', () => {
    it('runs a file with arguments that no shell interprets [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const text = '$HOME `id` "quoted" > /tmp/x; rm -rf *';
      const echo = scheduler
        .define('shell', [NODE, '-e', 'console.log(process.argv[1])', text])
        .named('echo');
      const { result } = await runJob(scheduler, echo.dispatch());
      assert.deepEqual(result, { exitCode: 0, stdout: `${text}\n`, stderr: '', cut: false });
    });

    it('passes the id and fence of the job to the program, and only listed variables of the worker [D2]', async () => {
      const { scheduler } = manualScheduler(database, { shellInheritEnv: ['CHRONOS_TEST_FOLDER'] });
      process.env['CHRONOS_TEST_SECRET'] = 'hunter2';
      process.env['CHRONOS_TEST_FOLDER'] = '/backup';
      try {
        const script = 'console.log(JSON.stringify(process.env))';
        const show = scheduler
          .define('shell', { file: NODE, args: ['-e', script], env: { OWN: 'yes' } })
          .named('show');
        const { id, result } = await runJob(scheduler, show.dispatch());
        const environment = JSON.parse((result as { stdout: string }).stdout) as Record<string, string>;
        assert.deepEqual(
          [environment['CHRONOS_JOB_ID'], environment['CHRONOS_FENCE'], environment['OWN']],
          [id, '1', 'yes'],
        );
        assert.equal(environment['CHRONOS_TEST_SECRET'], undefined);
        assert.equal(environment['CHRONOS_TEST_FOLDER'], '/backup');
      } finally {
        delete process.env['CHRONOS_TEST_SECRET'];
        delete process.env['CHRONOS_TEST_FOLDER'];
      }
    });

    it('fails the attempt when the exit code is not 0 [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const fail = scheduler
        .define('shell', [NODE, '-e', 'console.error("no space"); process.exit(3)'])
        .named('fail')
        .maxRetries(0);
      const job = await runJob(scheduler, fail.dispatch());
      assert.deepEqual([job.status, code(job)], ['FAILED', 'SHELL_FAILED']);
      assert.match(job.error!.message, /code 3.*no space/s);
    });

    it('is killed at its timeout [D2] [C5]', async () => {
      const scheduler = database.scheduler(withoutRenewalThread);
      const failed = nextEvent(scheduler, 'job:failed');
      await scheduler
        .define('shell', [NODE, '-e', 'setInterval(() => 1, 1000)'])
        .named('hang')
        .timeout('200ms')
        .maxRetries(0)
        .dispatch();
      await scheduler.start();
      assert.equal(((await failed).error as ChronosError).code, 'JOB_TIMEOUT');
    });

    it('does not let stored data change which program runs [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const hello = scheduler.define('shell', print('hello')).named('hello');
      const { id } = await hello.dispatch();
      await database.collections.jobs.updateOne({ _id: id }, { $set: { payload: print('tampered') } });
      await scheduler.run();
      assert.equal(((await scheduler.getJob(id))?.result as { stdout: string }).stdout, 'hello\n');
      const other = await runJob(scheduler, scheduler.dispatch('hello', print('another')));
      assert.equal((other.result as { stdout: string }).stdout, 'hello\n');
      const stored = await runStoredSchedule(database, 'hello', print('stored'), {}, (elsewhere) =>
        elsewhere.define('shell', print('hello')).named('hello'),
      );
      assert.equal((stored.result as { stdout: string }).stdout, 'hello\n');
    });

    it('runs every minute, inline, one instance at a time [D2] [D6]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.define('shell', ['ls', '-la']).named('list-files').everyMinute().singleInstance();
      await scheduler.runOnce();
      clock.advance(MINUTE);
      const { entries } = await scheduler.runOnce();
      assert.deepEqual(
        entries.map(({ name, result }) => [name, result]),
        [['list-files', 'run']],
      );
      const job = await scheduler.getJob(entries[0]!.jobId!);
      assert.match((job?.result as { stdout: string }).stdout, /package\.json/);
    });

    it('is rejected by define() when it is a plain string or not a command [D2]', () => {
      const { scheduler } = manualScheduler(database);
      assert.throws(() => scheduler.define('shell', 'ls -la'), { code: 'SHELL_REFUSED' });
      for (const bad of [undefined, [], {}, { file: 'ls', arg: [] }])
        assert.throws(() => scheduler.define('shell', bad), { code: 'INVALID_PAYLOAD' });
    });

    it('runs a shell command line only when that is requested [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const count = scheduler.define('shell', { shell: 'printf "a\\nb\\n" | wc -l' }).named('count');
      const { result } = await runJob(scheduler, count.dispatch());
      assert.equal((result as { stdout: string }).stdout.trim(), '2');
    });

    describe('from dispatched jobs and stored schedules', () => {
      const allowed = { shellFiles: [NODE] };

      it('is off by default: a dispatched job fails without a retry [D2]', async () => {
        const { scheduler } = manualScheduler(database);
        const job = await runJob(scheduler, scheduler.dispatch('shell', print('x'), { retries: { max: 5 } }));
        assert.deepEqual([job.status, job.attempts, code(job)], ['FAILED', 1, 'SHELL_REFUSED']);
        assert.match(job.error!.message, /shellFiles/);
      });

      it('is off by default for stored schedules [D2]', async () => {
        const job = await runStoredSchedule(database, 'shell', print('x'));
        assert.deepEqual([job.status, code(job)], ['FAILED', 'SHELL_REFUSED']);
      });

      it('runs the files that the option shellFiles lists [D2]', async () => {
        const { scheduler } = manualScheduler(database, allowed);
        const dispatched = await runJob(scheduler, scheduler.dispatch('shell', print('hello')));
        assert.equal((dispatched.result as { stdout: string }).stdout, 'hello\n');
        const stored = await runStoredSchedule(database, 'shell', print('stored'), allowed);
        assert.equal((stored.result as { stdout: string }).stdout, 'stored\n');
      });

      it('runs no other files, however they are written [D2]', async () => {
        const { scheduler } = manualScheduler(database, allowed);
        const folder = NODE.slice(0, NODE.lastIndexOf('/'));
        const payloads = [
          ['/bin/ls'],
          ['node', '--version'],
          [`${folder}/../${folder.slice(folder.lastIndexOf('/') + 1)}/node`, '--version'],
          [`${NODE}/../ls`],
          { shell: `${NODE} --version` },
          `${NODE} --version`,
          { file: NODE, args: [], env: { LD_PRELOAD: '/tmp/evil.so' } },
          { file: NODE, args: [], env: { NODE_OPTIONS: '--require /tmp/evil.js' } },
        ];
        for (const payload of payloads) {
          const job = await runJob(scheduler, scheduler.dispatch('shell', payload));
          assert.deepEqual([job.status, code(job)], ['FAILED', 'SHELL_REFUSED'], JSON.stringify(payload));
        }
      });

      it('is not restricted for definitions in the code [D2]', async () => {
        const { scheduler } = manualScheduler(database);
        const hello = scheduler.define('shell', print('hello')).named('hello');
        assert.equal((await runJob(scheduler, hello.dispatch())).status, 'COMPLETED');
      });

      it('is configured with absolute paths [D2]', () => {
        assert.throws(() => manualScheduler(database, { shellFiles: ['node'] }), {
          code: 'INVALID_OPTIONS',
          message: /options\.shellFiles\[0\] must be an absolute path/,
        });
      });
    });
  });
});
