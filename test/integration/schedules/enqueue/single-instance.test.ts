import assert from 'node:assert/strict';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { useDatabase } from '../../../support/database.js';
import { timeAfter, START } from '../../../support/instants.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { waitUntil } from '../../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../../support/worker-process.js';

const MINUTE = 60_000;

describe('a single instance after a crash', () => {
  const database = useSharedDatabase();

  /** The run of 00:01 is pending again, as if the process had crashed between inserting its job and removing it. */
  async function restorePending(): Promise<void> {
    const at = timeAfter(MINUTE);
    await database.collections.schedules.updateOne(
      { _id: 'report' },
      { $set: { pending: [{ kind: 'run', id: `report@${at.toISOString()}`, at, since: at }] } },
    );
  }

  it('is not blocked by a finished run in the next pass [Y5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.schedule('report', () => undefined).everyMinute();
    await scheduler.runOnce();
    clock.advance(MINUTE);
    await scheduler.runOnce();
    await restorePending();
    clock.advance(MINUTE);
    const { entries } = await scheduler.runOnce();
    assert.deepEqual((await scheduler.getSkips('report')).items, [], JSON.stringify(entries));
    assert.equal(
      (await scheduler.getJob(`report@${timeAfter(2 * MINUTE).toISOString()}`))?.status,
      'COMPLETED',
    );
  });

  it('is not blocked by a finished run in the next worker [Y5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.schedule('report', () => undefined).everyMinute();
    await scheduler.run();
    clock.advance(MINUTE);
    assert.equal(await scheduler.run(), 1);
    await restorePending();
    clock.advance(MINUTE);
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual((await scheduler.getSkips('report')).items, []);
    assert.equal(
      (await scheduler.getJob(`report@${timeAfter(2 * MINUTE).toISOString()}`))?.status,
      'COMPLETED',
    );
  });

  it('runs inline again when an inline run crashed and passes serve other queues [Y5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { queues: ['reports'], retries: { base: 0 } });
    const ran: string[] = [];
    scheduler.schedule('report', (_, job) => void ran.push(job.id)).everyMinute();
    await scheduler.runOnce();
    clock.advance(MINUTE);
    await scheduler.runOnce();
    await database.collections.jobs.updateOne(
      { schedule: 'report' },
      {
        $set: {
          ...{ status: 'RUNNING', lockedBy: 'dead', lockToken: 'lost', lockedUntil: START },
          ...{ finishedAt: null, settledBy: null, settledToken: null },
        },
      },
    );
    for (let minute = 2; minute <= 5; minute++) {
      clock.advance(MINUTE);
      await scheduler.runOnce();
    }
    assert.ok(ran.includes(`report@${timeAfter(5 * MINUTE).toISOString()}`), `ran: ${ran.join(', ')}`);
  });
});

/** Expires soon after the process is killed, and is swept soon, but is long enough for a busy machine to renew it. */
const SHORT_LOCK = { LOCK_TIMEOUT: '3s' };

describe('a single instance across processes', () => {
  const database = useDatabase();
  afterEach(killWorkers);

  function start(id: string, mode: 'run' | 'work', env: Record<string, string> = {}): WorkerProcess {
    return new WorkerProcess(id, {
      MONGODB_URI: database.uri,
      HANDLERS: 'test/fixtures/schedules.mjs',
      SCHEDULES: 'single',
      POLL_INTERVAL: '100',
      // WorkerProcess passes no arguments.
      NODE_OPTIONS: `--import=data:text/javascript,process.argv[2]='${mode}'`,
      ...env,
    });
  }

  const started = async (worker: WorkerProcess): Promise<void> => {
    const { jobId } = await worker.line(({ msg }) => msg === 'single started');
    // The handler writes to the journal a moment later.
    const entry = { kind: 'start', worker: worker.id, jobId };
    await waitUntil('its handler runs', async () => (await journal().findOne(entry)) !== null);
  };
  const journal = (): ReturnType<typeof database.connection.collection> =>
    database.connection.collection('journal');
  const release = (): Promise<unknown> =>
    database.connection.collection<{ _id: string }>('released').insertOne({ _id: 'single' });
  const completed = (): Promise<number> => database.collections.jobs.countDocuments({ status: 'COMPLETED' });
  const starts = (): Promise<{ jobId: string; worker: string }[]> =>
    journal().find({ kind: 'start' }).sort({ at: 1 }).toArray() as never;

  /** Resolves when an occurrence is due that is not planned yet. */
  async function nextOccurrence(): Promise<void> {
    await waitUntil('an occurrence is due', async () => {
      const { localTime } = (await database.admin({ hello: 1 })) as { localTime: Date };
      const schedule = await database.collections.schedules.findOne({ _id: 'single' });
      return (schedule?.nextRunAt ?? localTime) < localTime;
    });
  }

  /**
   * A pass that is running the single instance until `release()`. Usually that is the second pass: the first one
   * registers the schedule, and runs it only if the next second begins before it plans.
   */
  async function startHolder(env: Record<string, string> = {}): Promise<WorkerProcess> {
    for (;;) {
      const pass = start('holder', 'run', env);
      const exit = await Promise.race([started(pass), pass.exited]);
      if (exit === undefined) return pass;
      assert.equal(exit.code, 0, pass.stderr);
      await nextOccurrence();
    }
  }

  it('is skipped by a second pass while the first runs it, with the reason and exit code 0 [Y5] [D10]', async () => {
    const holder = await startHolder();
    await nextOccurrence();
    const second = start('second', 'run');
    assert.deepEqual([(await second.exited).code, second.stderr], [0, '']);
    const reasons = second.lines.map(({ reason }) => String(reason));
    assert.ok(
      reasons.some((reason) => reason.includes("single-instance job 'single' is already running")),
      reasons.join('\n'),
    );
    assert.equal((await starts()).length, 1);
    const [skip] = await database.collections.skips.find({ reason: 'overlap' }).toArray();
    assert.equal(skip?.activeId, (await starts())[0]?.jobId);
    assert.ok((skip?.runningFor ?? -1) >= 0);
    await release();
    assert.equal((await holder.exited).code, 0);
    assert.equal(await database.collections.jobs.countDocuments({ lockToken: { $ne: null } }), 0);
  });

  it('is not run by a worker while a pass runs it, and the worker continues afterwards [Y5] [J19]', async () => {
    const holder = await startHolder();
    const worker = start('worker', 'work');
    await worker.line(({ scheduleId, reason }) => scheduleId === 'single' && reason === 'overlap');
    assert.equal((await starts()).length, 1);
    await release();
    assert.equal((await holder.exited).code, 0);
    await started(worker);
    await waitUntil('the worker completed a run', async () => (await completed()) >= 2);
  });

  it('is recovered by a worker after kill -9 of the process that ran it [Y5]', async () => {
    const holder = await startHolder(SHORT_LOCK);
    const jobId = (await starts())[0]!.jobId;
    await holder.kill();
    const survivor = start('survivor', 'work', SHORT_LOCK);
    await started(survivor);
    assert.deepEqual(
      (await starts()).map((entry) => [entry.jobId, entry.worker]),
      [
        [jobId, 'holder'],
        [jobId, 'survivor'],
      ],
    );
    await release();
    await waitUntil('this run and a later one are completed', async () => (await completed()) >= 2);
    const job = await database.collections.jobs.findOne({ _id: jobId });
    assert.deepEqual([job?.status, job?.crashes, job?.attempts], ['COMPLETED', 1, 0]);
  });

  it('is recovered by the next passes after kill -9 of the process that ran it [Y5] [Y1]', async () => {
    const holder = await startHolder(SHORT_LOCK);
    const jobId = (await starts())[0]!.jobId;
    await holder.kill();
    await release();
    let passes = 0;
    await waitUntil('a pass recovered the run, and a later pass ran the next', async () => {
      const { code } = await start(`cron-${passes++}`, 'run').exited;
      assert.equal(code, 0);
      return (await completed()) >= 2;
    });
    const job = await database.collections.jobs.findOne({ _id: jobId });
    assert.deepEqual([job?.status, job?.crashes], ['COMPLETED', 1]);
  });
});
