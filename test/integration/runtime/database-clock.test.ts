import assert from 'node:assert/strict';
import { useDatabase } from '../../support/database.js';
import { ManualClock } from '../../support/manual-clock.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

const HOUR = 3_600_000;

/** Loaded first in a process: its wall clock is wrong by CLOCK_SHIFT, and jumps by an hour on SIGUSR2. */
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
 * After SIGUSR2 the monotonic clock jumps by an hour, which the time of the database is computed with. Tests send the
 * signal during a pass; the clock jumps between two passes, because a pass compares the clocks when it starts.
 */
const WRONG_HRTIME = `
  const right = process.hrtime;
  let wrong = 0;
  process.hrtime = Object.assign((...args) => {
    const [seconds, nanoseconds] = right(...args);
    return [seconds + wrong, nanoseconds];
  }, { bigint: right.bigint });
  process.on('SIGUSR2', () => setTimeout(() => {
    wrong += ${HOUR / 1000};
    console.log('{ "msg": "clock jumped" }');
  }, 400));
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
    // WorkerProcess takes no arguments for the process.
    const source = `process.argv[2] = '${mode}'; ${preload}`;
    return new WorkerProcess(id, {
      MONGODB_URI: db.uri,
      HANDLERS: 'test/fixtures/schedules.mjs',
      // A process that starts takes a second on a busy machine: that must not cost it its locks.
      LOCK_TIMEOUT: '5s',
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

  /** How many hours the wall clock of a process is wrong, by the time of its last log line. */
  const hoursOff = (worker: WorkerProcess): number =>
    Math.round((Number(worker.lines.at(-1)?.['time']) - Date.now()) / HOUR) + 0;

  it('can be an hour wrong: every second has one job, on time by the clock of the database [J15] [J16]', async () => {
    const from = await serverTime();
    const shifts = { behind: -HOUR, right: 0, ahead: HOUR };
    const workers = Object.entries(shifts).map(([id, shift]) =>
      start(id, 'work', WRONG_DATE, { SCHEDULES: 'second', CLOCK_SHIFT: String(shift) }),
    );
    await Promise.all(workers.map((worker) => worker.line(({ state }) => state === 'Running')));
    await waitUntil('three runs are completed', async () => (await completed()) >= 3);
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
    assert.ok(instants[0]! >= from && instants.at(-1)! <= to, 'a run was created early');
    for (const { createdAt, startedAt, scheduledFor, fence, crashes } of jobs) {
      assert.ok(createdAt.getTime() >= from - 500 && createdAt.getTime() <= to + 500);
      if (startedAt !== null) assert.ok(startedAt.getTime() >= scheduledFor!.getTime() - 100);
      assert.ok(fence <= 2 && crashes === 0, 'a lock was treated as expired');
    }
    assert.equal(await db.collections.skips.countDocuments(), 0);
    const { createdAt, nextRunAt } = (await db.collections.schedules.findOne({ _id: 'second' }))!;
    assert.ok(createdAt.getTime() >= from - 500 && createdAt.getTime() <= to);
    assert.ok(nextRunAt!.getTime() <= to + 2000);
  });

  it('can jump by an hour while the worker runs: locks are kept, and no run is early or skipped [J16] [C8]', async () => {
    const worker = start('jumps', 'work', WRONG_DATE, { SCHEDULES: 'single,second' });
    const { jobId } = await worker.line(({ msg }) => msg === 'single started');
    worker.signal('SIGUSR2');
    const jumped = await serverTime();
    const before = await db.collections.jobs.findOne({ _id: jobId ?? '' });
    await waitUntil('the lock is renewed and two runs are completed after the jump', async () => {
      const job = await db.collections.jobs.findOne({ _id: jobId ?? '' });
      const renewed = (job?.lockedUntil?.getTime() ?? 0) > (before?.lockedUntil?.getTime() ?? 0) + 1000;
      return renewed && (await completed({ scheduledFor: { $gt: new Date(jumped) } })) >= 2;
    });
    assert.equal(hoursOff(worker), 1);
    const now = await serverTime();
    const job = (await db.collections.jobs.findOne({ _id: jobId ?? '' }))!;
    assert.deepEqual([job.status, job.fence, job.crashes, job.lockedBy], ['RUNNING', 1, 0, 'jumps']);
    assert.ok(job.lockedUntil!.getTime() < now + 6000);
    const jobs = await db.collections.jobs.find({ schedule: 'second' }).sort({ scheduledFor: 1 }).toArray();
    const instants = jobs.map(({ scheduledFor }) => scheduledFor?.getTime() ?? NaN);
    assert.deepEqual(
      instants,
      instants.map((_, index) => instants[0]! + index * 1000),
    );
    assert.ok(instants.at(-1)! <= now);
    assert.equal(await db.collections.skips.countDocuments({ reason: { $ne: 'overlap' } }), 0);
  });

  it('can be hours wrong in a pass: the clock of the database decides what is due [Y1]', async () => {
    const runPass = async (shift: number): Promise<string> => {
      const cron = start('cron', 'run', WRONG_DATE, { SCHEDULES: 'good', CLOCK_SHIFT: String(shift) });
      assert.equal((await cron.exited).code, 0);
      assert.equal(hoursOff(cron), shift / HOUR);
      return cron.lines.find(({ name }) => name === 'good')?.msg ?? '';
    };
    assert.match(await runPass(3 * HOUR), /^good: skipped \(not due/);
    const earlier = (field: string): object => ({ [field]: { $subtract: [`$${field}`, HOUR] } });
    await db.collections.schedules.updateMany({}, [
      { $set: { ...earlier('anchor'), ...earlier('nextRunAt') } },
    ]);
    assert.equal(await runPass(-3 * HOUR), 'good: run');
    assert.match(await runPass(3 * HOUR), /^good: skipped \(not due/);
  });

  it('is compared with the clock of the database at each pass of a daemon [Y2] [J16]', async () => {
    const worker = start('daemon', 'daemon', WRONG_HRTIME, { SCHEDULES: 'second', TICK_INTERVAL: '1s' });
    await waitUntil('the first run is completed', async () => (await completed()) >= 1);
    worker.signal('SIGUSR2');
    await worker.line(({ msg }) => msg === 'clock jumped');
    const jumped = await serverTime();
    await waitUntil(
      'two more runs are completed',
      async () => (await completed({ scheduledFor: { $gt: new Date(jumped) } })) >= 2,
    );
    const now = await serverTime();
    const early = await db.collections.jobs.find({ scheduledFor: { $gt: new Date(now + 1000) } }).toArray();
    assert.deepEqual(
      early.map(({ _id }) => _id),
      [],
      `the time of the database is ${new Date(now).toISOString()}`,
    );
  });

  it('is not used by nextRuns() of a definition when a clock is injected [J16]', () => {
    const scheduler = db.scheduler({ clock: new ManualClock('2026-01-01T00:00:30Z') });
    const definition = scheduler.schedule('report', () => undefined).everyMinute();
    assert.deepEqual(definition.nextRuns(1), [new Date('2026-01-01T00:01:00Z')]);
  });
});
