import assert from 'node:assert/strict';
import type { Scheduler, SchedulerOptions } from '../../../src/index.js';
import { useDatabase } from '../../support/database.js';
import { blocker, nextEvent, recordEvents, signal } from '../../support/events.js';
import { withFailPoint } from '../../support/fail-point.js';
import { ManualClock } from '../../support/manual-clock.js';
import { countOutcomes, loadOutcomes } from '../../support/occurrence-outcomes.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

/** No other service of a scheduler sleeps this long. The clock starts at a multiple of it. */
const INTERVAL = 90_000;

/** A manual clock that detects when the daemon sleeps until its next tick. */
class TickClock extends ManualClock {
  #waiting = signal();

  get #untilTick(): number {
    return INTERVAL - (this.now().getTime() % INTERVAL);
  }

  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms === this.#untilTick) this.#waiting.fire();
    return super.sleep(ms, signal);
  }

  /** Resolves when the pass of this tick has ended. */
  get waiting(): Promise<void> {
    return this.#waiting.promise;
  }

  async nextTick(): Promise<void> {
    await this.waiting;
    this.#waiting = signal();
    this.advance(this.#untilTick);
  }
}

describe('the daemon', () => {
  const database = useSharedDatabase();

  function onTheTick(options: Partial<SchedulerOptions> = {}): { clock: TickClock; scheduler: Scheduler } {
    const clock = new TickClock();
    return { clock, scheduler: database.scheduler({ clock, lockTimeout: '1d', ...options }) };
  }

  it('runs a pass at every multiple of its interval until it is stopped, and leaves nothing open [Y2]', async () => {
    const { scheduler, clock } = onTheTick();
    const listeners = process.listenerCount('SIGTERM');
    const ran: string[] = [];
    scheduler
      .schedule('report', (_, job) => void ran.push(job.scheduledFor?.toISOString().slice(14, 19) ?? ''))
      .every(INTERVAL);
    const trouble = recordEvents(scheduler, 'worker:error', 'daemon:overrun');
    const over = scheduler.daemon({ interval: INTERVAL });
    for (let tick = 1; tick <= 5; tick++) {
      const complete = nextEvent(scheduler, 'job:complete');
      await clock.nextTick();
      await complete;
    }
    await clock.waiting;
    await scheduler.stop();
    assert.deepEqual(await over, { ticks: 6, overruns: 0, reason: 'stopped', left: [] });
    assert.deepEqual(ran, ['01:30', '03:00', '04:30', '06:00', '07:30']);
    assert.deepEqual(trouble, []);
    assert.equal(scheduler.state, 'Stopped');
    assert.equal(process.listenerCount('SIGTERM'), listeners);
    assert.equal(clock.sleepers, 0);
  });

  for (const collection of ['jobs', 'schedules'] as const) {
    it(`waits for a pass that reads ${collection} before stop() closes the connection [Y2]`, async () => {
      const { scheduler, clock } = onTheTick();
      scheduler.schedule('report', () => undefined).every(INTERVAL);
      const trouble = recordEvents(scheduler, 'worker:error');
      const over = scheduler.daemon({ interval: INTERVAL });
      await withFailPoint(database, { commands: ['find'], collection, how: 200 }, async () => {
        await clock.nextTick();
        await flushEventLoop();
        await scheduler.stop();
      });
      assert.equal((await over).reason, 'stopped');
      assert.deepEqual(trouble, []);
    });
  }

  async function keepTicking(clock: TickClock): Promise<never> {
    for (;;) await clock.nextTick();
  }

  it('reports overruns and ends after maxOverruns in a row [Y2]', async () => {
    const { scheduler, clock } = onTheTick();
    let runs = 0;
    scheduler
      .schedule('slow', () => {
        // The second run is on time, which resets the count.
        if (++runs !== 2) clock.advance(1.5 * INTERVAL);
      })
      .every(INTERVAL)
      .onMisfire('skip')
      .overlap('allow');
    const overruns = recordEvents(scheduler, 'daemon:overrun');
    const over = scheduler.daemon({ interval: INTERVAL, maxOverruns: 2 });
    const report = await Promise.race([over, keepTicking(clock)]);
    assert.equal(report.reason, 'overruns');
    assert.deepEqual(overruns.map(({ event }) => (event as { inARow: number }).inARow).slice(-2), [1, 2]);
    assert.equal(report.overruns, overruns.length);
    assert.equal(scheduler.state, 'Stopped');
  });

  it('reports a pass that fails as a whole, and the next pass runs what was missed [Y2] [Y9]', async () => {
    const { scheduler, clock } = onTheTick();
    const ran: string[] = [];
    scheduler
      .schedule('report', (_, job) => void ran.push(job.scheduledFor?.toISOString().slice(14, 19) ?? ''))
      .every(INTERVAL);
    const over = scheduler.daemon({ interval: INTERVAL });
    await clock.nextTick();
    await nextEvent(scheduler, 'job:complete');
    const ofPass = ({ operation }: { operation: string }): boolean => operation === 'run pass';
    const reports: unknown[] = [];
    await clock.waiting;
    scheduler.on('worker:error', (event) => {
      if (ofPass(event)) reports.push([event.failures, event.retryIn]);
    });
    await withFailPoint(database, { commands: ['find'], how: 'error' }, async () => {
      for (let tick = 0; tick < 2; tick++) {
        const trouble = nextEvent(scheduler, 'worker:error', ofPass);
        await clock.nextTick();
        await trouble;
      }
    });
    const recovered = nextEvent(scheduler, 'worker:recovered', ofPass);
    await clock.nextTick();
    assert.equal((await recovered).failures, 2);
    assert.deepEqual(reports, [
      [1, INTERVAL],
      [2, INTERVAL],
    ]);
    assert.deepEqual(ran, ['01:30', '04:30', '06:00']);
    await scheduler.stop();
    assert.equal((await over).reason, 'stopped');
  });

  it('can be stopped while it connects [Y2]', async () => {
    const { scheduler } = onTheTick();
    const over = scheduler.daemon({ interval: INTERVAL });
    over.catch(() => undefined);
    await scheduler.stop();
    assert.deepEqual(await over, { ticks: 0, overruns: 0, reason: 'stopped', left: [] });
  });

  it('lets the handler end when it is stopped during a pass, starts no other, and reports no error [Y2]', async () => {
    const { scheduler, clock } = onTheTick();
    const { block, entered, release } = blocker();
    const ran: string[] = [];
    scheduler
      .schedule('first', async () => {
        await block();
        ran.push('first');
      })
      .every(INTERVAL);
    scheduler.schedule('second', () => void ran.push('second')).every(INTERVAL);
    const trouble = recordEvents(scheduler, 'worker:error');
    const over = scheduler.daemon({ interval: INTERVAL });
    await clock.nextTick();
    await entered;
    const stopped = scheduler.stop();
    release();
    await stopped;
    assert.equal((await over).reason, 'stopped');
    assert.deepEqual(ran, ['first']);
    assert.deepEqual(trouble, []);
    assert.equal(await database.collections.jobs.countDocuments({ lockToken: { $ne: null } }), 0);
    // The next process runs the occurrence that was not started.
    const next = database.scheduler({ clock, lockTimeout: '1d' });
    next.schedule('second', () => void ran.push('second')).every(INTERVAL);
    clock.advance(3000);
    await next.runOnce();
    assert.deepEqual(ran, ['first', 'second']);
  });

  it('rejects an invalid interval and unknown options', async () => {
    const { scheduler } = onTheTick();
    const wrong: object[] = [
      { interval: '10ms' },
      { interval: 0 },
      { maxOverruns: 0 },
      { batch: -1 },
      { intervall: 5 },
    ];
    for (const options of wrong)
      await assert.rejects(scheduler.daemon(options), { code: 'INVALID_ARGUMENT' });
  });
});

describe('node dist/worker.js daemon', () => {
  const db = useDatabase();
  afterEach(killWorkers);

  function daemon(id: string, schedules: string, env: Record<string, string> = {}): WorkerProcess {
    return new WorkerProcess(id, {
      MONGODB_URI: db.uri,
      HANDLERS: 'test/fixtures/schedules.mjs',
      SCHEDULES: schedules,
      TICK_INTERVAL: '500ms',
      // WorkerProcess cannot pass an argument.
      NODE_OPTIONS: "--import=data:text/javascript,process.argv[2]='daemon'",
      ...env,
    });
  }

  /** Every second has one job, or was skipped as a misfire because the machine was too slow. Returns the number of jobs. */
  async function assertEverySecond(): Promise<number> {
    const jobs = await db.collections.jobs.find({ schedule: 'second' }).sort({ scheduledFor: 1 }).toArray();
    const [first, last] = [jobs[0]?.scheduledFor, jobs.at(-1)?.scheduledFor];
    const outcomes = await loadOutcomes(db.stored, 'second', {
      after: new Date(first!.getTime() - 1),
      until: last!,
    });
    const { job, misfire = 0 } = countOutcomes(outcomes);
    assert.deepEqual([job, outcomes.length], [jobs.length, jobs.length + misfire]);
    return jobs.length;
  }

  it('runs due definitions inline at each tick and exits with 0 on SIGTERM [Y2] [J17]', async () => {
    const worker = daemon('daemon', 'second');
    await waitUntil('three occurrences ran', async () => {
      return (await db.collections.jobs.countDocuments({ status: 'COMPLETED' })) >= 3;
    });
    worker.signal('SIGTERM');
    assert.deepEqual([(await worker.exited).code, worker.stderr], [0, '']);
    const jobs = await assertEverySecond();
    assert.equal(await db.connection.collection('journal').countDocuments({ kind: 'start' }), jobs);
    assert.equal(await db.collections.jobs.countDocuments({ lockToken: { $ne: null } }), 0);
    assert.deepEqual(
      worker.lines.filter(({ msg }) => msg.includes(' failed')),
      [],
    );
  });

  it('exits with 1 and names the job when SIGTERM leaves a handler behind [J17]', async () => {
    const before = db.scheduler();
    before.schedule('stubborn', () => undefined).every('1h');
    await before.runOnce();
    await db.makeSchedulesDue(3_600_000);
    const worker = daemon('daemon', 'stubborn', { SHUTDOWN_GRACE: '1s' });
    await worker.line(({ msg }) => msg === 'stubborn started');
    worker.signal('SIGTERM');
    assert.equal((await worker.exited).code, 1);
    assert.ok(worker.lines.some(({ msg, jobId }) => msg.includes('left unfinished') && jobId !== undefined));
  });

  it('exits with 5 after MAX_OVERRUNS in a row and logs the reason [Y2]', async () => {
    const worker = daemon('daemon', 'slow', { TICK_INTERVAL: '200ms', SLOW_MS: '1200', MAX_OVERRUNS: '2' });
    assert.equal((await worker.exited).code, 5);
    assert.ok(worker.lines.some(({ msg }) => /^tick \d+ ended .* late \(2nd in a row\)$/.test(msg)));
    assert.ok(worker.lines.some(({ reason }) => reason === 'overruns'));
    assert.equal(await db.collections.jobs.countDocuments({ lockToken: { $ne: null } }), 0);
  });

  it('shares the work with a second daemon and continues when that one is killed [Y2] [J15]', async () => {
    const shortLease = { LOCK_TIMEOUT: '1s' };
    const [one, other] = [daemon('one', 'second', shortLease), daemon('other', 'second', shortLease)];
    await waitUntil('two occurrences ran', async () => {
      return (await db.collections.jobs.countDocuments({ status: 'COMPLETED' })) >= 2;
    });
    await one.kill();
    const killedAt = Date.now();
    await waitUntil('two later occurrences ran', async () => {
      const later = { scheduledFor: { $gt: new Date(killedAt + 1000) }, status: 'COMPLETED' } as const;
      return (await db.collections.jobs.countDocuments(later)) >= 2;
    });
    other.signal('SIGTERM');
    assert.equal((await other.exited).code, 0);
    await assertEverySecond();
    const starts = await db.connection.collection('journal').find({ kind: 'start' }).toArray();
    const keys = starts.map(({ jobId, fence }) => `${String(jobId)}:${String(fence)}`);
    assert.equal(new Set(keys).size, keys.length);
  });
});
