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

  /** What a process leaves that dies after its run was inserted, and before that is noted in the schedule. */
  async function dieBeforeNoting(): Promise<void> {
    const at = timeAfter(MINUTE);
    await database.collections.schedules.updateOne(
      { _id: 'report' },
      { $set: { pending: [{ kind: 'run', id: `report@${at.toISOString()}`, at, since: at }] } },
    );
  }

  it('is not blocked by a finished run: the next pass runs the next occurrence [Y5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.schedule('report', () => undefined).everyMinute();
    await scheduler.runOnce();
    clock.advance(MINUTE);
    await scheduler.runOnce();
    await dieBeforeNoting();
    clock.advance(MINUTE);
    const { entries } = await scheduler.runOnce();
    assert.deepEqual(await scheduler.getSkips('report'), [], JSON.stringify(entries));
    assert.equal(
      (await scheduler.getJob(`report@${timeAfter(2 * MINUTE).toISOString()}`))?.status,
      'COMPLETED',
    );
  });

  it('is not blocked by a finished run: the next worker creates the next job [Y5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.schedule('report', () => undefined).everyMinute();
    await scheduler.run();
    clock.advance(MINUTE);
    assert.equal(await scheduler.run(), 1);
    await dieBeforeNoting();
    clock.advance(MINUTE);
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual(await scheduler.getSkips('report'), []);
    assert.equal(
      (await scheduler.getJob(`report@${timeAfter(2 * MINUTE).toISOString()}`))?.status,
      'COMPLETED',
    );
  });

  it('is run inline again when an inline run crashed and passes serve other queues [Y5]', async () => {
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

/** For the process that is killed: its lock expires soon, yet not while a busy machine keeps it from renewing. */
const SHORT_LOCK = { LOCK_TIMEOUT: '3s' };

describe('a single instance across processes', () => {
  const db = useDatabase();
  afterEach(killWorkers);

  function start(id: string, mode: 'run' | 'work', env: Record<string, string> = {}): WorkerProcess {
    return new WorkerProcess(id, {
      MONGODB_URI: db.uri,
      HANDLERS: 'test/fixtures/schedules.mjs',
      SCHEDULES: 'single',
      POLL_INTERVAL: '100',
      // WorkerProcess has no place for an argument.
      NODE_OPTIONS: `--import=data:text/javascript,process.argv[2]='${mode}'`,
      ...env,
    });
  }

  const started = async (worker: WorkerProcess): Promise<void> => {
    const { jobId } = await worker.line(({ msg }) => msg === 'single started');
    // The handler writes to the journal a moment later.
    const noted = { kind: 'start', worker: worker.id, jobId };
    await waitUntil('its handler runs', async () => (await journal().findOne(noted)) !== null);
  };
  const journal = (): ReturnType<typeof db.connection.collection> => db.connection.collection('journal');
  const release = (): Promise<unknown> =>
    db.connection.collection<{ _id: string }>('released').insertOne({ _id: 'single' });
  const completed = (): Promise<number> => db.collections.jobs.countDocuments({ status: 'COMPLETED' });
  const starts = (): Promise<{ jobId: string; worker: string }[]> =>
    journal().find({ kind: 'start' }).sort({ at: 1 }).toArray() as never;

  /** Another occurrence is due that nobody has decided on. */
  async function anotherSecond(): Promise<void> {
    await waitUntil('another second has come', async () => {
      const { localTime } = (await db.admin({ hello: 1 })) as { localTime: Date };
      return (
        ((await db.collections.schedules.findOne({ _id: 'single' }))?.nextRunAt ?? localTime) < localTime
      );
    });
  }

  /** A pass that holds the single instance. */
  async function holder(env: Record<string, string> = {}): Promise<WorkerProcess> {
    assert.equal((await start('first', 'run', env).exited).code, 0);
    await anotherSecond();
    const held = start('holder', 'run', env);
    await started(held);
    return held;
  }

  it('fails fast in a second pass while the first runs it, with the reason and exit code 0 [Y5] [D10]', async () => {
    const held = await holder();
    await anotherSecond();
    const second = start('second', 'run');
    assert.deepEqual([(await second.exited).code, second.stderr], [0, '']);
    const reasons = second.lines.map(({ reason }) => String(reason));
    assert.ok(
      reasons.some((reason) => reason.includes("single-instance job 'single' is already running")),
      reasons.join('\n'),
    );
    assert.equal((await starts()).length, 1);
    const [skip] = await db.collections.skips.find({ reason: 'overlap' }).toArray();
    assert.equal(skip?.activeId, (await starts())[0]?.jobId);
    assert.ok((skip?.runningFor ?? -1) >= 0);
    await release();
    assert.equal((await held.exited).code, 0);
    assert.equal(await db.collections.jobs.countDocuments({ lockToken: { $ne: null } }), 0);
  });

  it('is not run by a worker while a pass runs it, and the worker continues afterwards [Y5] [J19]', async () => {
    const held = await holder();
    const worker = start('worker', 'work');
    await worker.line(({ scheduleId, reason }) => scheduleId === 'single' && reason === 'overlap');
    assert.equal((await starts()).length, 1);
    await release();
    assert.equal((await held.exited).code, 0);
    await started(worker);
    await waitUntil('the worker completed one', async () => (await completed()) >= 2);
  });

  it('is recovered next to a worker after kill -9 of the process that ran it [Y5]', async () => {
    const held = await holder(SHORT_LOCK);
    const jobId = (await starts())[0]!.jobId;
    await held.kill();
    const heir = start('heir', 'work');
    await started(heir);
    // Nothing else ran meanwhile.
    assert.deepEqual(
      (await starts()).map((one) => [one.jobId, one.worker]),
      [
        [jobId, 'holder'],
        [jobId, 'heir'],
      ],
    );
    await release();
    await waitUntil('it and a later one are completed', async () => (await completed()) >= 2);
    const job = await db.collections.jobs.findOne({ _id: jobId });
    assert.deepEqual([job?.status, job?.crashes, job?.attempts], ['COMPLETED', 1, 0]);
  });

  it('is recovered by the next passes after kill -9 of the process that ran it [Y5] [Y1]', async () => {
    const held = await holder(SHORT_LOCK);
    const jobId = (await starts())[0]!.jobId;
    await held.kill();
    await release();
    let passes = 0;
    await waitUntil('a pass has recovered it, and a later one has run the next', async () => {
      const { code } = await start(`cron-${passes++}`, 'run').exited;
      assert.equal(code, 0);
      return (await completed()) >= 2;
    });
    const job = await db.collections.jobs.findOne({ _id: jobId });
    assert.deepEqual([job?.status, job?.crashes], ['COMPLETED', 1]);
  });
});
