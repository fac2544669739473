import assert from 'node:assert/strict';
import type { Scheduler, SchedulerEvents, SchedulerOptions } from '../../../src/index.js';
import { useDatabase } from '../../support/database.js';
import { nextEvent, signal } from '../../support/events.js';
import { withFailPoint } from '../../support/fail-point.js';
import type { ManualClock } from '../../support/manual-clock.js';
import { advanceUntilSettled, manualScheduler } from '../../support/manual-scheduler.js';

const SECOND = 1000;

describe('a critical fault of a running worker', () => {
  const database = useDatabase();

  function createWorker(options: Partial<SchedulerOptions> = {}): {
    clock: ManualClock;
    scheduler: Scheduler;
  } {
    return manualScheduler(database, { lockTimeout: '30s', heartbeatInterval: '5s', ...options });
  }

  /** The next change of the state, which follows while the clock advances. */
  function nextState(scheduler: Scheduler, clock: ManualClock): Promise<SchedulerEvents['worker:state']> {
    return advanceUntilSettled(clock, nextEvent(scheduler, 'worker:state'), SECOND);
  }

  /** Jobs cannot be claimed or swept; heartbeats continue. */
  const denied = { commands: ['find', 'findAndModify'], how: 'denied' } as const;

  it('is permissions that are revoked for longer than lockTimeout [F8]', async () => {
    const { scheduler, clock } = createWorker({ taskHandlers: { work: () => undefined } });
    await scheduler.start();
    const { state, previous, error } = await withFailPoint(database, denied, () =>
      nextState(scheduler, clock),
    );
    assert.deepEqual([previous, state], ['Running', 'Error']);
    assert.equal((error as { code?: string }).code, 'NOT_AUTHORIZED');
    assert.match(error?.message ?? '', /has denied the operation '.*' .* for [34]\d s.*roles\.json/);

    await advanceUntilSettled(clock, scheduler.start());
    assert.equal(scheduler.state, 'Running');
    const completed = nextEvent(scheduler, 'job:complete');
    await scheduler.dispatch('work');
    await advanceUntilSettled(clock, completed, 10);
    await advanceUntilSettled(clock, scheduler.stop());
    assert.equal(scheduler.state, 'Stopped');
  });

  it('is an index or a collection that is gone [F8]', async () => {
    const { jobs, skips } = database.collections;
    for (const [remove, name] of [
      [() => jobs.dropIndex('claim'), `${jobs.collectionName}.claim`],
      [() => skips.drop(), skips.collectionName],
    ] as const) {
      const { scheduler, clock } = createWorker();
      await scheduler.start();
      await remove();
      const { state, error } = await nextState(scheduler, clock);
      assert.deepEqual([state, (error as { code?: string }).code], ['Error', 'NOT_INSTALLED']);
      assert.ok(error?.message.includes(name), error?.message);
      await advanceUntilSettled(clock, scheduler.stop());
      assert.equal(scheduler.state, 'Stopped');
    }
  });

  it('is an installation of a newer version: nothing is claimed, and what runs may finish [F8] [B19]', async () => {
    const release = signal();
    const { scheduler, clock } = createWorker({
      lockTimeout: '1d',
      taskHandlers: { long: () => release.promise, work: () => assert.fail('claimed') },
    });
    const running = nextEvent(scheduler, 'worker:state', ({ state }) => state === 'Running');
    const ended = scheduler.forever();
    ended.catch(() => undefined);
    await running;
    const started = nextEvent(scheduler, 'job:start');
    const { id } = await scheduler.dispatch('long');
    await started;
    await database.connection
      .collection<{ _id: string }>('chronos_installation')
      .updateOne({ _id: 'layout' }, { $set: { layoutVersion: 1000, packageVersion: '9.1.0' } });
    const { state, error } = await nextState(scheduler, clock);
    assert.deepEqual([state, (error as { code?: string }).code], ['Error', 'NEWER_INSTALLATION']);
    const waiting = await database.collections.jobs.insertOne({
      ...(await database.collections.jobs.findOne({ _id: id }))!,
      ...{ _id: 'later', taskType: 'work', status: 'SCHEDULED', lockToken: null, lockedUntil: null },
    });
    release.fire();
    await assert.rejects(advanceUntilSettled(clock, ended, 100), { code: 'NEWER_INSTALLATION' });
    assert.equal((await database.collections.jobs.findOne({ _id: id }))?.status, 'COMPLETED');
    assert.equal((await database.collections.jobs.findOne({ _id: waiting.insertedId }))?.status, 'SCHEDULED');
    await assert.rejects(scheduler.start(), { code: 'NEWER_INSTALLATION' });
  });
});
