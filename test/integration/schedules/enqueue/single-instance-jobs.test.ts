import assert from 'node:assert/strict';
import type { AnyPayloads, Scheduler, SchedulerOptions } from '../../../../src/index.js';
import { nextEvent } from '../../../support/events.js';
import { withFailPoint } from '../../../support/fail-point.js';
import { timeAfter } from '../../../support/instants.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { useSignals } from '../../../support/pass-reports.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { waitUntil } from '../../../support/wait-until.js';

const MINUTE = 60_000;

describe('singleInstance() called explicitly', () => {
  const newSignal = useSignals();
  const database = useSharedDatabase();
  const running = new Set<string>();
  const runs: string[] = [];
  let maxAtOnce = 0;

  beforeEach(() => {
    running.clear();
    runs.length = 0;
    maxAtOnce = 0;
  });

  async function record(id: string, work: () => Promise<unknown>): Promise<void> {
    running.add(id);
    runs.push(id);
    maxAtOnce = Math.max(maxAtOnce, running.size);
    await work();
    running.delete(id);
  }

  /** A worker whose handler of `report` runs until it is released. */
  function reporter(
    released: Promise<unknown>,
    options: Partial<SchedulerOptions> = {},
  ): ReturnType<typeof manualScheduler<AnyPayloads>> {
    const made = manualScheduler(database, { timeout: '1d', ...options });
    made.scheduler
      .schedule('report', (_: unknown, { id }: { id: string }) => record(id, () => released))
      .everyMinute()
      .singleInstance();
    return made;
  }

  async function isBlocked(scheduler: Scheduler, id: string): Promise<boolean> {
    return (await scheduler.getJob(id))?.state === 'blocked';
  }

  /** The occurrence of 00:01 is running in a pass of its own. */
  async function startOccurrence(scheduler: Scheduler, advance: (ms: number) => void): Promise<number> {
    await scheduler.run();
    advance(MINUTE);
    const started = nextEvent(scheduler, 'job:start');
    const pass = scheduler.run();
    await started;
    return pass;
  }

  const OCCURRENCE = `report@${timeAfter(MINUTE).toISOString()}`;

  it('lets dispatched and triggered runs wait for the occurrence that is running [Y5]', async () => {
    const released = newSignal();
    const { scheduler, clock } = reporter(released.promise);
    const pass = startOccurrence(scheduler, (ms) => clock.advance(ms));
    await nextEvent(scheduler, 'job:start');
    const other = reporter(released.promise, { clock });
    const dispatched = await other.scheduler.dispatch('report');
    const triggered = await other.scheduler.triggerSchedule('report');
    assert.ok(triggered.triggered);
    await other.scheduler.run();
    assert.deepEqual(runs, [OCCURRENCE]);
    for (const id of [dispatched.id, triggered.jobId]) {
      assert.equal((await scheduler.getJob(id))?.state, 'blocked');
      const explanation = await scheduler.operations.explainJob(id);
      assert.equal(explanation?.check, 'singleInstance');
      assert.ok(explanation?.sentence.includes(OCCURRENCE), explanation?.sentence);
    }
    released.fire();
    await pass;
    await other.scheduler.run();
    assert.deepEqual(runs.toSorted(), [OCCURRENCE, dispatched.id, triggered.jobId].toSorted());
    assert.equal(maxAtOnce, 1);
    assert.deepEqual(await dispatched.wait({ timeout: '1s' }).then(({ status }) => status), 'COMPLETED');
  });

  it('skips an occurrence while a dispatched run is running [Y5]', async () => {
    const released = newSignal();
    const { scheduler, clock } = reporter(released.promise);
    await scheduler.run();
    const { id } = await scheduler.dispatch('report');
    const started = nextEvent(scheduler, 'job:start');
    const pass = scheduler.run();
    await started;
    clock.advance(MINUTE);
    await reporter(released.promise, { clock }).scheduler.run();
    const { items } = await scheduler.getSkips('report');
    assert.deepEqual(
      items.map(({ reason, activeId, at }) => [reason, activeId, at]),
      [['overlap', id, timeAfter(MINUTE)]],
    );
    released.fire();
    await pass;
    assert.deepEqual([runs, maxAtOnce], [[id], 1]);
  });

  it('runs all of many jobs, one at a time, in several workers [Y5]', async () => {
    const options = { ...withoutRenewalThread, concurrency: 5, pollInterval: 100 };
    const workers = [1, 2].map(() => {
      const scheduler = database.scheduler(options);
      scheduler
        .schedule('report', (_: unknown, { id }: { id: string }) => record(id, () => Promise.resolve()))
        .singleInstance();
      return scheduler;
    });
    await Promise.all(workers.map((worker) => worker.start()));
    // A process without the definition.
    const client = database.scheduler(withoutRenewalThread);
    const results = await client.dispatchMany(Array.from({ length: 20 }, () => ({ taskType: 'report' })));
    const ids = results.map(({ id }) => id);
    await waitUntil('all jobs have run', async () => runs.length >= ids.length);
    assert.deepEqual(runs.toSorted(), ids.toSorted());
    assert.equal(maxAtOnce, 1);
  });

  it('runs waiting jobs in the order of their priority and due time [Y5] [J10]', async () => {
    const { scheduler } = reporter(Promise.resolve(), { concurrency: 4 });
    const low = await scheduler.dispatch('report', null, { priority: 200 });
    const first = await scheduler.dispatch('report');
    const second = await scheduler.dispatch('report');
    const urgent = await scheduler.dispatch('report', null, { priority: 1 });
    assert.equal(await scheduler.run(), 4);
    assert.deepEqual(runs, [urgent.id, first.id, second.id, low.id]);
    assert.equal(maxAtOnce, 1);
  });

  it('lets the retry of a finished run wait for the current one [Y5]', async () => {
    const released = newSignal();
    released.fire();
    const { scheduler, clock } = reporter(released.promise);
    const { id } = await scheduler.dispatch('report');
    assert.equal(await scheduler.run(), 1);
    const blocked = newSignal();
    const other = reporter(blocked.promise, { clock });
    const pass = startOccurrence(other.scheduler, (ms) => clock.advance(ms));
    await nextEvent(other.scheduler, 'job:start');
    assert.equal((await scheduler.retry(id)).result, 'changed');
    await scheduler.run();
    assert.ok(await isBlocked(scheduler, id));
    blocked.fire();
    await pass;
    await scheduler.run();
    assert.deepEqual([runs, maxAtOnce], [[id, OCCURRENCE, id], 1]);
  });

  it('counts a run that waits for its retry, or whose worker died, as running [Y5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { retries: { base: '1m', jitter: 'none' } });
    let fails = true;
    scheduler
      .schedule('report', (_: unknown, { id }: { id: string }) =>
        record(id, () => Promise.resolve()).then(() => {
          if (fails) throw new Error('not yet');
        }),
      )
      .singleInstance();
    const { id: first } = await scheduler.dispatch('report');
    await scheduler.run();
    const { id: second } = await scheduler.dispatch('report');
    await scheduler.run();
    assert.deepEqual(runs, [first]);
    assert.ok(await isBlocked(scheduler, second));
    // As if its worker had died.
    await database.collections.jobs.updateOne(
      { _id: first },
      { $set: { status: 'RUNNING', lockedBy: 'dead', lockToken: 'lost', lockedUntil: timeAfter(-1) } },
    );
    await scheduler.run();
    assert.ok(await isBlocked(scheduler, second));
    fails = false;
    clock.advance(10 * MINUTE);
    assert.equal(await scheduler.run(), 2);
    assert.deepEqual(runs, [first, first, second]);
  });

  it('frees the place of a waiting job that is cancelled, held or ended otherwise [Y5] [B4]', async () => {
    const released = newSignal();
    const { scheduler, clock } = reporter(released.promise);
    const pass = startOccurrence(scheduler, (ms) => clock.advance(ms));
    await nextEvent(scheduler, 'job:start');
    const other = reporter(released.promise, { clock });
    const [cancelled, held, left] = await Promise.all(
      [1, 2, 3].map(() => other.scheduler.dispatch('report')),
    );
    await other.scheduler.run();
    assert.equal((await cancelled!.cancel()).state, 'cancelled');
    assert.equal((await other.scheduler.hold(held!.id)).state, 'held');
    released.fire();
    await pass;
    await other.scheduler.run();
    assert.deepEqual(runs, [OCCURRENCE, left!.id]);
    assert.equal((await other.scheduler.unhold(held!.id)).result, 'changed');
    await other.scheduler.run();
    assert.deepEqual(runs, [OCCURRENCE, left!.id, held!.id]);
  });

  it('makes a waiting job eligible whose process crashed after it chose the job [Y5]', async () => {
    const released = newSignal();
    const { scheduler, clock } = reporter(released.promise);
    const pass = startOccurrence(scheduler, (ms) => clock.advance(ms));
    await nextEvent(scheduler, 'job:start');
    const other = reporter(released.promise, { clock });
    const first = await other.scheduler.dispatch('report');
    const second = await other.scheduler.dispatch('report');
    await other.scheduler.run();
    released.fire();
    await pass;
    await database.collections.schedules.updateOne({ _id: 'report' }, { $set: { active: second.id } });
    assert.equal(await other.scheduler.run(), 2);
    assert.deepEqual([runs, maxAtOnce], [[OCCURRENCE, second.id, first.id], 1]);
  });

  it('runs a job once if the reply is lost when it becomes the current run [Y5]', async () => {
    const { scheduler } = reporter(Promise.resolve());
    await scheduler.run();
    const { id } = await scheduler.dispatch('report');
    const lost = { commands: ['update'], collection: 'schedules', times: 1, how: 'lostReply' } as const;
    await withFailPoint(database, lost, () => scheduler.run());
    assert.deepEqual(runs, [id]);
  });

  it('releases a job that could not be made the current run, and starts the jobs of other types [Y5]', async () => {
    const { scheduler } = reporter(Promise.resolve());
    scheduler.registerHandler('other', (_: unknown, { id }) => record(id, () => Promise.resolve()));
    await scheduler.run();
    const { id } = await scheduler.dispatch('report');
    const { id: other } = await scheduler.dispatch('other');
    const failing = { commands: ['update'], collection: 'schedules', how: 'error' } as const;
    await withFailPoint(database, failing, () => assert.rejects(scheduler.run()));
    await waitUntil('the other job has run', async () => runs.includes(other));
    const job = await scheduler.getJob(id);
    assert.deepEqual([runs, job?.status, job?.lockedBy], [[other], 'SCHEDULED', null]);
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual(runs, [other, id]);
  });

  it('does not apply to the default policy: dispatched runs are separate jobs [J6] [Y5]', async () => {
    const released = newSignal();
    const { scheduler, clock } = manualScheduler(database, { timeout: '1d' });
    scheduler
      .schedule('report', (_: unknown, { id }: { id: string }) => record(id, () => released.promise))
      .everyMinute();
    await scheduler.run();
    clock.advance(MINUTE);
    await scheduler.dispatch('report');
    await scheduler.dispatch('report');
    const pass = scheduler.run();
    await waitUntil('three run at once', async () => running.size === 3);
    released.fire();
    await pass;
    const [stored] = await database.collections.schedules.find().toArray();
    assert.deepEqual([stored?.overlap, stored?.singleInstance], ['skip', false]);
  });

  it('contradicts overlap allow [Y5]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler
      .schedule('report', () => undefined)
      .singleInstance()
      .overlap('allow');
    await assert.rejects(scheduler.start(), /singleInstance\(\).*overlap\('allow'\)/);
  });
});
