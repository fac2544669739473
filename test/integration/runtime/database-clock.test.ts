import assert from 'node:assert/strict';
import { useDatabase } from '../../support/database.js';
import { ManualClock } from '../../support/manual-clock.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

const HOUR = 3_600_000;

/** Loaded before everything else in a child: its wall clock is wrong, and jumps by an hour on SIGUSR2. */
const WRONG_DATE = `
  const Right = Date;
  let wrong = Number(process.env.CLOCK_SHIFT);
  const now = () => Right.now() + wrong;
  globalThis.Date = new Proxy(Right, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new Right(now()).toString(),
    get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
  });
  process.on('SIGUSR2', () => (wrong += ${HOUR}));
`;

/**
 * The same for the monotonic clock, which the database's time is carried by: an hour off, some time after SIGUSR2. Not
 * at once: a pass that is at work has measured it already.
 */
const WRONG_HRTIME = `
  const right = process.hrtime;
  let wrong = 0;
  process.hrtime = Object.assign((...args) => {
    const [seconds, nanoseconds] = right(...args);
    return [seconds + wrong, nanoseconds];
  }, { bigint: right.bigint });
  process.on('SIGUSR2', () => setTimeout(() => (wrong += ${HOUR / 1000}), 1000));
`;

describe('the clock of a worker’s machine', () => {
  const db = useDatabase();
  afterEach(killWorkers);

  function start(
    id: string,
    mode: 'work' | 'run' | 'daemon',
    preload: string,
    env: Record<string, string>,
  ): WorkerProcess {
    // WorkerProcess has no place for an argument.
    const source = `process.argv[2] = '${mode}'; ${preload}`;
    return new WorkerProcess(id, {
      MONGODB_URI: db.uri,
      HANDLERS: 'test/fixtures/schedules.mjs',
      LOCK_TIMEOUT: '1s',
      POLL_INTERVAL: '200',
      CLOCK_SHIFT: '0',
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(source)}`,
      ...env,
    });
  }

  async function serverTime(): Promise<number> {
    const { localTime } = (await db.admin({ hello: 1 })) as { localTime: Date };
    return localTime.getTime();
  }

  const completed = (more: object = {}): Promise<number> =>
    db.collections.jobs.countDocuments({ schedule: 'second', status: 'COMPLETED', ...more });

  /** How far the clock that a process writes its log by is off, in hours. */
  const hoursOff = (worker: WorkerProcess): number =>
    Math.round((Number(worker.lines.at(-1)?.['time']) - Date.now()) / HOUR) + 0;

  it('can be an hour off: every second has one job, on time by the database [J15] [J16]', async () => {
    const from = await serverTime();
    const shifts = { behind: -HOUR, right: 0, ahead: HOUR };
    const workers = Object.entries(shifts).map(([id, shift]) =>
      start(id, 'work', WRONG_DATE, { SCHEDULES: 'second', CLOCK_SHIFT: String(shift) }),
    );
    await Promise.all(workers.map((worker) => worker.line(({ state }) => state === 'Running')));
    await waitUntil('seconds went by', async () => (await completed()) >= 3);
    assert.deepEqual(workers.map(hoursOff), [-1, 0, 1]);
    for (const worker of workers) worker.signal('SIGTERM');
    for (const worker of workers) assert.equal((await worker.exited).code, 0);
    const to = await serverTime();

    const jobs = await db.collections.jobs.find().sort({ scheduledFor: 1 }).toArray();
    const instants = jobs.map(({ scheduledFor }) => scheduledFor?.getTime() ?? NaN);
    assert.deepEqual(
      instants,
      instants.map((_, index) => instants[0]! + index * 1000),
    );
    assert.ok(instants[0]! >= from && instants.at(-1)! <= to, 'nothing was due before it was time');
    for (const { createdAt, startedAt, scheduledFor, fence, crashes } of jobs) {
      assert.ok(createdAt.getTime() >= from - 500 && createdAt.getTime() <= to + 500);
      if (startedAt !== null) assert.ok(startedAt.getTime() >= scheduledFor!.getTime() - 100);
      assert.ok(fence <= 2 && crashes === 0, 'no lock was taken for expired');
    }
    assert.equal(await db.collections.skips.countDocuments(), 0);
    const { createdAt, nextRunAt } = (await db.collections.schedules.findOne({ _id: 'second' }))!;
    assert.ok(createdAt.getTime() >= from - 500 && createdAt.getTime() <= to);
    assert.ok(nextRunAt!.getTime() <= to + 2000);
  });

  it('can jump by an hour while the worker runs: locks are kept, and nothing is early, late or skipped [J16] [C8]', async () => {
    const worker = start('jumps', 'work', WRONG_DATE, { SCHEDULES: 'single,second' });
    const { jobId } = await worker.line(({ msg }) => msg === 'single started');
    worker.signal('SIGUSR2');
    const jumped = await serverTime();
    const before = await db.collections.jobs.findOne({ _id: jobId ?? '' });
    await waitUntil('its lock was renewed after the jump, and seconds went by', async () => {
      const job = await db.collections.jobs.findOne({ _id: jobId ?? '' });
      const renewed = (job?.lockedUntil?.getTime() ?? 0) > (before?.lockedUntil?.getTime() ?? 0) + 1000;
      return renewed && (await completed({ scheduledFor: { $gt: new Date(jumped) } })) >= 2;
    });
    assert.equal(hoursOff(worker), 1);
    const now = await serverTime();
    const job = (await db.collections.jobs.findOne({ _id: jobId ?? '' }))!;
    assert.deepEqual([job.status, job.fence, job.crashes, job.lockedBy], ['RUNNING', 1, 0, 'jumps']);
    assert.ok(job.lockedUntil!.getTime() < now + 2000);
    const jobs = await db.collections.jobs.find({ schedule: 'second' }).sort({ scheduledFor: 1 }).toArray();
    const instants = jobs.map(({ scheduledFor }) => scheduledFor?.getTime() ?? NaN);
    assert.deepEqual(
      instants,
      instants.map((_, index) => instants[0]! + index * 1000),
    );
    assert.ok(instants.at(-1)! <= now);
    assert.equal(await db.collections.skips.countDocuments({ reason: { $ne: 'overlap' } }), 0);
  });

  it('can be hours off in a pass: what is due is decided by the database [Y1]', async () => {
    const entry = async (shift: number): Promise<string> => {
      const cron = start('cron', 'run', WRONG_DATE, { SCHEDULES: 'good', CLOCK_SHIFT: String(shift) });
      assert.equal((await cron.exited).code, 0);
      assert.equal(hoursOff(cron), Math.round(shift / HOUR));
      return cron.lines.find(({ name }) => name === 'good')?.msg ?? '';
    };
    assert.match(await entry(3 * HOUR), /^good: skipped \(not due/);
    const earlier = (field: string): object => ({ [field]: { $subtract: [`$${field}`, HOUR] } });
    await db.collections.schedules.updateMany({}, [
      { $set: { ...earlier('anchor'), ...earlier('nextRunAt') } },
    ]);
    assert.equal(await entry(-3 * HOUR), 'good: run');
    assert.match(await entry(3 * HOUR), /^good: skipped \(not due/);
  });

  it('is measured again by a daemon [Y2] [J16]', async () => {
    const worker = start('daemon', 'daemon', WRONG_HRTIME, { SCHEDULES: 'second', TICK_INTERVAL: '300ms' });
    await waitUntil('it is at work', async () => (await completed()) >= 1);
    worker.signal('SIGUSR2');
    const jumped = await serverTime();
    await waitUntil(
      'it goes on',
      async () => (await completed({ scheduledFor: { $gt: new Date(jumped) } })) >= 2,
    );
    const now = await serverTime();
    const early = await db.collections.jobs.find({ scheduledFor: { $gt: new Date(now + 1000) } }).toArray();
    assert.deepEqual(
      early.map(({ _id }) => _id),
      [],
      `by the database it is ${new Date(now).toISOString()}`,
    );
  });

  it('is replaced by an injected clock, also for nextRuns() of a definition [J16]', () => {
    const scheduler = db.scheduler({ clock: new ManualClock('2026-01-01T00:00:30Z') });
    const definition = scheduler.schedule('report', () => undefined).everyMinute();
    assert.deepEqual(definition.nextRuns(1), [new Date('2026-01-01T00:01:00Z')]);
  });
});
