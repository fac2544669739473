import assert from 'node:assert/strict';
import type { ChronosError, JobContext, JobView, Scheduler, SchedulerOptions } from '../../src/index.js';
import { byHand, inProcess } from '../support/by-hand.js';
import { nextEvent, recordEvents, signal } from '../support/events.js';
import { after, START } from '../support/instants.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { closeServers, serve } from '../unit/built-in/server.js';

const MINUTE = 60_000;
const NODE = process.execPath;
const print = (text: string): string[] => [NODE, '-e', `console.log(${JSON.stringify(text)})`];

describe('built-in handlers', () => {
  const database = useSharedDatabase();

  /** One pass, and what became of the job. */
  async function outcomeOf(scheduler: Scheduler, dispatched: Promise<{ id: string }>): Promise<JobView> {
    const { id } = await dispatched;
    await scheduler.run();
    return (await scheduler.getJob(id))!;
  }

  /** The first occurrence of a schedule that is stored at run time, a minute later. */
  async function storedOutcome(
    taskType: string,
    payload: unknown,
    options: Partial<SchedulerOptions> = {},
    prepare: (scheduler: Scheduler) => unknown = () => undefined,
  ): Promise<JobView> {
    const { scheduler, clock } = byHand(database, options);
    prepare(scheduler);
    const id = await scheduler.addSchedule({ taskType, payload, cron: '* * * * *', retries: { max: 1 } });
    clock.advance(MINUTE);
    await scheduler.run();
    return (await scheduler.getJob(`${id}@${after(MINUTE).toISOString()}`))!;
  }

  const code = ({ error }: JobView): string | null | undefined => error?.code;

  describe('command', () => {
    it('D2 runs the command of that name, with its arguments and its job', async () => {
      const { scheduler } = byHand(database);
      const report = (args: unknown, job: JobContext): unknown => [args, job.taskType, job.id];
      assert.equal(scheduler.registerCommand('app:report', report), scheduler);
      const plain = scheduler.define('command', 'app:report').named('daily-report');
      const given = scheduler
        .define('command', { command: 'app:report', args: { month: 5 } })
        .named('monthly-report');
      const first = await outcomeOf(scheduler, plain.dispatch());
      assert.deepEqual(first.result, [null, 'daily-report', first.id]);
      const second = await outcomeOf(scheduler, given.dispatch());
      assert.deepEqual(second.result, [{ month: 5 }, 'monthly-report', second.id]);
      const third = await outcomeOf(scheduler, given.dispatch({ month: 6 }));
      assert.deepEqual(third.result, [{ month: 6 }, 'monthly-report', third.id]);
    });

    it('D2 D4 at its time, in its queue, with its retries', async () => {
      const { scheduler, clock } = byHand(database, { queues: ['reports'] });
      let attempts = 0;
      scheduler.registerCommand('app:report', () => {
        if (++attempts === 1) throw new Error('not yet');
        return 'reported';
      });
      scheduler
        .define('command', 'app:report')
        .named('daily-report')
        .dailyAt('02:00')
        .queue('reports')
        .maxRetries(3);
      await scheduler.run();
      clock.advance(120 * MINUTE);
      await scheduler.run();
      clock.advance(MINUTE);
      await scheduler.run();
      const job = await scheduler.getJob('daily-report@2026-01-01T02:00:00.000Z');
      assert.deepEqual(
        [job?.status, job?.queue, job?.result, job?.attempts],
        ['COMPLETED', 'reports', 'reported', 1],
      );
    });

    it('D2 D3 two commands without names are two definitions', async () => {
      const { scheduler, clock } = byHand(database);
      const ran: string[] = [];
      for (const name of ['app:report', 'app:purge']) {
        scheduler.registerCommand(name, () => ran.push(name));
        scheduler.define('command', name).everyMinute();
      }
      await scheduler.run();
      clock.advance(MINUTE);
      await scheduler.run();
      assert.deepEqual(ran.sort(), ['app:purge', 'app:report']);
    });

    it('D2 may be a class, and may be registered after the definition', async () => {
      const { scheduler } = byHand(database);
      const purge = scheduler.define('command', 'app:purge').named('purge').cron('30 3 * * 1-5');
      scheduler.registerCommand(
        'app:purge',
        class {
          handle(): string {
            return 'purged';
          }
        },
      );
      assert.equal((await outcomeOf(scheduler, purge.dispatch())).result, 'purged');
    });

    it('D2 one that is not registered is refused at start, with a hint', async () => {
      const scheduler = database.scheduler(inProcess);
      scheduler.registerCommand('app:report', () => 1);
      scheduler.define('command', 'app:reprot').named('nightly').daily();
      await assert.rejects(scheduler.start(), {
        code: 'COMMAND_UNKNOWN',
        message: /^schedule 'nightly' runs the command 'app:reprot', which is not registered.*did you mean/,
      });
    });

    it('D2 its task type is command:<name>, for stored schedules and dispatched jobs', async () => {
      const register = (scheduler: Scheduler): unknown =>
        scheduler.registerCommand('app:report', (args: unknown) => ['ran', args]);
      const { scheduler } = byHand(database);
      register(scheduler);
      const dispatched = await outcomeOf(scheduler, scheduler.dispatch('command:app:report', { n: 1 }));
      assert.deepEqual(dispatched.result, ['ran', { n: 1 }]);
      assert.deepEqual((await storedOutcome('command:app:report', { n: 2 }, {}, register)).result, [
        'ran',
        { n: 2 },
      ]);
    });

    it('D2 another one of the same name, and what is no command, is refused', () => {
      const { scheduler } = byHand(database);
      scheduler.registerCommand('app:report', () => 1);
      assert.throws(() => scheduler.registerCommand('app:report', () => 2), { code: 'HANDLER_EXISTS' });
      for (const bad of [null, 5, 'app:other', {}])
        assert.throws(() => scheduler.registerCommand('app:bad', bad as never), { code: 'HANDLER_INVALID' });
    });

    it('D2 a name that is none is refused', () => {
      const { scheduler } = byHand(database);
      for (const name of ['a@b', 'a#b', 'a!b', '', undefined, null, 5, {}])
        assert.throws(
          () => scheduler.registerCommand(name as never, () => 1),
          { code: 'INVALID_ARGUMENT' },
          JSON.stringify(name),
        );
    });
  });

  describe('shell', () => {
    it('D2 runs a file with its arguments, which no shell reads', async () => {
      const { scheduler } = byHand(database);
      const text = '$HOME `id` "quoted" > /tmp/x; rm -rf *';
      const echo = scheduler
        .define('shell', [NODE, '-e', 'console.log(process.argv[1])', text])
        .named('echo');
      const { result } = await outcomeOf(scheduler, echo.dispatch());
      assert.deepEqual(result, { exitCode: 0, stdout: `${text}\n`, stderr: '', cut: false });
    });

    it('D2 tells the program which job it runs for, and keeps the secrets of the worker', async () => {
      const { scheduler } = byHand(database);
      process.env['CHRONOS_TEST_SECRET'] = 'hunter2';
      try {
        const script = 'console.log(JSON.stringify(process.env))';
        const show = scheduler
          .define('shell', { file: NODE, args: ['-e', script], env: { GIVEN: 'yes' } })
          .named('show');
        const { id, result } = await outcomeOf(scheduler, show.dispatch());
        const environment = JSON.parse((result as { stdout: string }).stdout) as Record<string, string>;
        assert.deepEqual(
          [environment['CHRONOS_JOB_ID'], environment['CHRONOS_FENCE'], environment['GIVEN']],
          [id, '1', 'yes'],
        );
        assert.equal(environment['CHRONOS_TEST_SECRET'], undefined);
      } finally {
        delete process.env['CHRONOS_TEST_SECRET'];
      }
    });

    it('D2 an exit code that is not 0 is a failed attempt', async () => {
      const { scheduler } = byHand(database);
      const fail = scheduler
        .define('shell', [NODE, '-e', 'console.error("no space"); process.exit(3)'])
        .named('fail')
        .maxRetries(0);
      const job = await outcomeOf(scheduler, fail.dispatch());
      assert.deepEqual([job.status, code(job)], ['FAILED', 'SHELL_FAILED']);
      assert.match(job.error!.message, /exit code 3.*no space/s);
    });

    it('D2 C5 is killed when its time is up', async () => {
      const scheduler = database.scheduler(inProcess);
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

    it('D2 what is stored cannot change which program runs', async () => {
      const { scheduler } = byHand(database);
      const hello = scheduler.define('shell', print('hello')).named('hello');
      const { id } = await hello.dispatch();
      await database.collections.jobs.updateOne({ _id: id }, { $set: { payload: print('tampered') } });
      await scheduler.run();
      assert.equal(((await scheduler.getJob(id))?.result as { stdout: string }).stdout, 'hello\n');
      const other = await outcomeOf(scheduler, scheduler.dispatch('hello', print('another')));
      assert.equal((other.result as { stdout: string }).stdout, 'hello\n');
      const byStored = await storedOutcome('hello', print('stored'), {}, (elsewhere) =>
        elsewhere.define('shell', print('hello')).named('hello'),
      );
      assert.equal((byStored.result as { stdout: string }).stdout, 'hello\n');
    });

    it('D2 D6 list-files: every minute, in place, one at a time', async () => {
      const { scheduler, clock } = byHand(database);
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

    it('D2 is refused at the call when it is a plain string or no command', () => {
      const { scheduler } = byHand(database);
      assert.throws(() => scheduler.define('shell', 'ls -la'), { code: 'SHELL_REFUSED' });
      for (const bad of [undefined, [], {}, { file: 'ls', arg: [] }])
        assert.throws(() => scheduler.define('shell', bad), { code: 'INVALID_PAYLOAD' });
    });

    it('D2 a line for a shell has to be asked for', async () => {
      const { scheduler } = byHand(database);
      const count = scheduler.define('shell', { shell: 'printf "a\\nb\\n" | wc -l' }).named('count');
      const { result } = await outcomeOf(scheduler, count.dispatch());
      assert.equal((result as { stdout: string }).stdout.trim(), '2');
    });

    describe('from outside the code', () => {
      const allowed = { shellFiles: [NODE] };

      it('D2 is off: a dispatched job is refused, once, whatever its retries', async () => {
        const { scheduler } = byHand(database);
        const job = await outcomeOf(
          scheduler,
          scheduler.dispatch('shell', print('x'), { retries: { max: 5 } }),
        );
        assert.deepEqual([job.status, job.attempts, code(job)], ['FAILED', 1, 'SHELL_REFUSED']);
        assert.match(job.error!.message, /shellFiles/);
      });

      it('D2 is off: so is a stored schedule', async () => {
        const job = await storedOutcome('shell', print('x'));
        assert.deepEqual([job.status, code(job)], ['FAILED', 'SHELL_REFUSED']);
      });

      it('D2 runs the files that the operator allows by name', async () => {
        const { scheduler } = byHand(database, allowed);
        const dispatched = await outcomeOf(scheduler, scheduler.dispatch('shell', print('hello')));
        assert.equal((dispatched.result as { stdout: string }).stdout, 'hello\n');
        const stored = await storedOutcome('shell', print('stored'), allowed);
        assert.equal((stored.result as { stdout: string }).stdout, 'stored\n');
      });

      it('D2 and no others, however they are written', async () => {
        const { scheduler } = byHand(database, allowed);
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
          const job = await outcomeOf(scheduler, scheduler.dispatch('shell', payload));
          assert.deepEqual([job.status, code(job)], ['FAILED', 'SHELL_REFUSED'], JSON.stringify(payload));
        }
      });

      it('D2 what is in the code needs no permission', async () => {
        const { scheduler } = byHand(database);
        const hello = scheduler.define('shell', print('hello')).named('hello');
        assert.equal((await outcomeOf(scheduler, hello.dispatch())).status, 'COMPLETED');
      });

      it('D2 the option takes absolute paths', () => {
        assert.throws(() => byHand(database, { shellFiles: ['node'] }), {
          code: 'INVALID_OPTIONS',
          message: /options\.shellFiles\[0\] must be an absolute path/,
        });
      });
    });
  });

  describe('url', () => {
    afterEach(closeServers);

    it('D2 asks the address, and says for which job', async () => {
      const { url, requests } = await serve((_, response) => response.end('pong'));
      const { scheduler } = byHand(database, { urlHosts: ['127.0.0.1'] });
      const ping = scheduler
        .define('url', { method: 'GET', url: `${url}/ping` })
        .named('ping')
        .everyMinute();
      const { id, status, result } = await outcomeOf(scheduler, ping.dispatch());
      assert.equal(status, 'COMPLETED');
      assert.deepEqual(
        [(result as { status: number }).status, (result as { body: string }).body],
        [200, 'pong'],
      );
      const [{ method, path, headers }] = requests as [(typeof requests)[0]];
      assert.deepEqual(
        [method, path, headers['idempotency-key'], headers['x-chronos-fence']],
        ['GET', '/ping', id, '1'],
      );
    });

    it('D2 a mere address will do, and a dispatch may bring its own', async () => {
      const { url, requests } = await serve((_, response) => response.end());
      const { scheduler } = byHand(database, { urlHosts: ['127.0.0.1'] });
      const ping = scheduler.define('url', `${url}/a`).named('ping');
      await outcomeOf(scheduler, ping.dispatch());
      await outcomeOf(scheduler, ping.dispatch({ url: `${url}/b`, method: 'POST', body: { n: 1 } }));
      assert.deepEqual(
        requests.map(({ method, path, body }) => [method, path, body]),
        [
          ['GET', '/a', ''],
          ['POST', '/b', '{"n":1}'],
        ],
      );
    });

    it('D2 an answer that was not expected is a failed attempt, which is retried', async () => {
      let answers = 0;
      const { url } = await serve((_, response) => {
        response.statusCode = ++answers === 1 ? 503 : 200;
        response.end();
      });
      const { scheduler, clock } = byHand(database, { urlHosts: ['127.0.0.1'] });
      const { id } = await scheduler.define('url', url).named('ping').maxRetries(1).dispatch();
      await scheduler.run();
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.error?.code], ['SCHEDULED', 'URL_FAILED']);
      clock.advance(MINUTE);
      await scheduler.run();
      assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
    });

    it('D2 for stored schedules and dispatched jobs too; private addresses have to be allowed', async () => {
      const { url, requests } = await serve((_, response) => response.end('pong'));
      const stored = await storedOutcome('url', url, { urlHosts: ['127.0.0.1'] });
      assert.deepEqual([stored.status, (stored.result as { body: string }).body], ['COMPLETED', 'pong']);
      const { scheduler } = byHand(database);
      const refused = await outcomeOf(scheduler, scheduler.dispatch('url', url, { retries: { max: 1 } }));
      assert.deepEqual([refused.status, code(refused)], ['FAILED', 'URL_REFUSED']);
      assert.equal(requests.length, 1);
    });

    it('D2 what is no request fails without being asked again', async () => {
      const { scheduler } = byHand(database);
      for (const payload of [
        null,
        5,
        'example.com',
        'ftp://example.com',
        { url: 'https://a', methode: 'GET' },
      ]) {
        const job = await outcomeOf(scheduler, scheduler.dispatch('url', payload, { retries: { max: 5 } }));
        assert.deepEqual(
          [job.status, job.attempts, code(job)],
          ['FAILED', 1, 'INVALID_PAYLOAD'],
          JSON.stringify(payload),
        );
      }
    });
  });

  describe('event', () => {
    it('D2 calls the listeners on the channel, with the data and the job', async () => {
      const { scheduler } = byHand(database);
      const heard: unknown[] = [];
      scheduler.channel.on('order:paid', (data, job) => heard.push([data, job.id]));
      const paid = scheduler.define('event', { event: 'order:paid', data: { n: 7 } }).named('paid');
      const { id, result } = await outcomeOf(scheduler, paid.dispatch());
      assert.deepEqual(heard, [[{ n: 7 }, id]]);
      assert.deepEqual(result, { listeners: 1 });
    });

    it('D2 cannot forge an event of the scheduler', async () => {
      const { scheduler } = byHand(database);
      const events = recordEvents(scheduler, 'job:complete', 'job:failed', 'worker:state');
      const heard: unknown[] = [];
      const forged = { jobId: 'x', taskType: 'x', result: 'forged' };
      scheduler.channel.on('job:complete', (data) => heard.push(data));
      const { id } = await outcomeOf(
        scheduler,
        scheduler.dispatch('event', { event: 'job:complete', data: forged }),
      );
      assert.deepEqual(heard, [forged]);
      assert.deepEqual(
        events.map(({ name, event }) => [name, (event as { jobId: string }).jobId]),
        [['job:complete', id]],
      );
    });

    it('D2 nor is an event of the scheduler heard on the channel', async () => {
      const { scheduler } = byHand(database);
      scheduler.channel.on('job:complete', () => assert.fail('this is another bus'));
      scheduler.registerHandler('work', () => 1);
      assert.equal((await outcomeOf(scheduler, scheduler.dispatch('work'))).status, 'COMPLETED');
    });

    it('D2 one that nobody hears is a failed attempt, with a hint', async () => {
      const { scheduler } = byHand(database);
      scheduler.channel.on('order:paid', () => 1);
      const typo = scheduler.define('event', 'order:piad').named('typo').maxRetries(0);
      const job = await outcomeOf(scheduler, typo.dispatch());
      assert.deepEqual([job.status, code(job)], ['FAILED', 'EVENT_UNHEARD']);
      assert.match(job.error!.message, /did you mean 'order:paid'\?/);
    });

    it('D2 a listener that throws fails the attempt, and the listeners are awaited', async () => {
      const { scheduler } = byHand(database);
      const finished: string[] = [];
      scheduler.channel.on('tick', () => Promise.reject(new Error('boom')));
      scheduler.channel.on('tick', async () => {
        await database.collections.jobs.countDocuments();
        finished.push('slow');
      });
      const tick = scheduler.define('event', 'tick').named('ticker').maxRetries(0);
      const job = await outcomeOf(scheduler, tick.dispatch());
      assert.deepEqual([job.status, job.error?.message, finished], ['FAILED', 'boom', ['slow']]);
    });

    it('D2 for stored schedules too', async () => {
      const heard: unknown[] = [];
      const job = await storedOutcome('event', { event: 'tick', data: 1 }, {}, (scheduler) =>
        scheduler.channel.on('tick', (data) => heard.push(data)),
      );
      assert.deepEqual([job.status, heard], ['COMPLETED', [1]]);
    });
  });

  describe('closure', () => {
    it('D2 a named one can be queued, and runs in any worker that has the code', async () => {
      const define = (scheduler: Scheduler): unknown =>
        scheduler
          .define('closure', (_: unknown, job: JobContext) => `done by ${job.lockedBy}`)
          .named('housekeeping')
          .hourly()
          .queue('chores');
      const { scheduler: maker, clock } = byHand(database, { workerId: 'maker' });
      define(maker);
      await maker.run();
      clock.advance(60 * MINUTE);
      await maker.run();
      const other = database.scheduler({ clock, lockTimeout: '1d', queues: ['chores'], workerId: 'other' });
      define(other);
      assert.equal(await other.run(), 1);
      const job = await other.getJob(`housekeeping@${after(60 * MINUTE).toISOString()}`);
      assert.equal(job?.result, 'done by other');
    });

    it('D2 D3 an unnamed one runs in place, in a pass', async () => {
      const { scheduler, clock } = byHand(database);
      const ran: unknown[] = [];
      scheduler
        .define('closure', (args: unknown) => ran.push(args))
        .args({ n: 1 })
        .everyMinute();
      scheduler.define('closure', () => ran.push('another')).everyMinute();
      await scheduler.runOnce();
      clock.advance(MINUTE);
      const { entries } = await scheduler.runOnce();
      assert.deepEqual(ran, [{ n: 1 }, 'another']);
      for (const { name, result } of entries) {
        assert.match(name, /^closure-[0-9a-f]{16}$/);
        assert.equal(result, 'run');
      }
    });

    it('D2 an unnamed one cannot be queued, nor run by a worker', async () => {
      const { scheduler } = byHand(database);
      scheduler
        .define('closure', () => 1)
        .hourly()
        .queue('chores');
      await assert.rejects(scheduler.runOnce(), {
        code: 'INVALID_SCHEDULE',
        message: /cannot be queued.*named\(\)/,
      });
      for (const how of ['start', 'run'] as const) {
        const worker = database.scheduler(inProcess);
        worker.define('closure', () => 1).hourly();
        await assert.rejects(worker[how](), { code: 'INVALID_SCHEDULE', message: /one-pass run.*named\(\)/ });
      }
      assert.equal(await database.collections.schedules.countDocuments(), 0);
    });

    it('D2 an unnamed one cannot be dispatched: no worker would take it', async () => {
      const { scheduler } = byHand(database);
      const unnamed = scheduler.define('closure', () => 1);
      await assert.rejects(async () => unnamed.dispatch(), {
        code: 'INVALID_SCHEDULE',
        message: /named\(\)/,
      });
      await assert.rejects(async () => unnamed.delay('1h').dispatch(), { code: 'INVALID_SCHEDULE' });
      assert.equal(await database.collections.jobs.countDocuments(), 0);
    });

    it('D2 C12 a named one is given its signal like any handler', async () => {
      const scheduler = database.scheduler({ ...inProcess, timeoutGrace: '100ms' });
      const reached = signal();
      const { id } = await scheduler
        .define('closure', (_: unknown, job: JobContext) => {
          reached.fire();
          return new Promise((_resolve, reject) => {
            job.signal.addEventListener('abort', () => reject(job.signal.reason as Error));
          });
        })
        .named('patient')
        .dispatch();
      await scheduler.start();
      await reached.promise;
      assert.deepEqual(await scheduler.stop('150ms'), { left: [] });
      assert.equal((await database.collections.jobs.findOne({ _id: id }))?.status, 'SCHEDULED');
    });
  });

  it('D2 a handler of the application takes the place of a built-in of the same name', async () => {
    const { scheduler } = byHand(database);
    scheduler.registerHandler('url', (payload: unknown) => ['mine', payload]);
    const dispatched = await outcomeOf(scheduler, scheduler.dispatch('url', 'x'));
    assert.deepEqual(dispatched.result, ['mine', 'x']);
    const defined = scheduler.define('url', 'y').named('ping');
    assert.deepEqual((await outcomeOf(scheduler, defined.dispatch())).result, ['mine', 'y']);
  });

  it('D1 define() with a task type of the application', async () => {
    const { scheduler } = byHand(database);
    scheduler.registerHandler('sendEmail', (payload: { to: string }) => `sent to ${payload.to}`);
    const welcome = scheduler.define('sendEmail', { to: 'ada' }).named('welcome').daily();
    const job = await outcomeOf(scheduler, welcome.dispatch());
    assert.deepEqual([job.taskType, job.result, job.nextRunAt], ['welcome', 'sent to ada', START]);
  });
});
