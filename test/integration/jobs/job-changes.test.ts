import assert from 'node:assert/strict';
import type { JobDocument } from '../../../src/domain/job/job.js';
import { type JobState, STATE_NAMES } from '../../../src/domain/job/state.js';
import { serveHttp } from '../../../src/http/server.js';
import type { JobChange, Scheduler } from '../../../src/index.js';
import { ApiClient } from '../../support/api-client.js';
import { aJob } from '../../support/factories/job.js';
import { START, timeAfter } from '../../support/instants.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const LATER = timeAfter(3_600_000);
const TOKEN = 'a-token-to-operate-with';

const FIELDS: Record<JobState, Partial<JobDocument>> = {
  waiting: {},
  delayed: { nextRunAt: LATER },
  retrying: { nextRunAt: LATER, attempts: 1 },
  held: { status: 'PENDING' },
  blocked: { status: 'PENDING', held: null },
  prefetched: { status: 'QUEUED' },
  running: { status: 'RUNNING' },
  completed: { status: 'COMPLETED' },
  failed: { status: 'FAILED' },
  cancelled: { status: 'CANCELLED' },
  skipped: { status: 'CANCELLED', cancelKind: 'skipped' },
  expired: { status: 'CANCELLED', cancelKind: 'expired' },
};

interface Action {
  change: (scheduler: Scheduler, id: string) => Promise<JobChange>;
  body?: object;
  /** The states that allow the change, and the state after it. */
  allowed: Partial<Record<JobState, JobState>>;
}

const ACTIONS: Record<string, Action> = {
  cancel: {
    change: (scheduler, id) => scheduler.cancel(id),
    allowed: {
      ...{ waiting: 'cancelled', delayed: 'cancelled', retrying: 'cancelled', held: 'cancelled' },
      ...{ blocked: 'cancelled', prefetched: 'cancelled', running: 'running' },
    },
  },
  retry: {
    change: (scheduler, id) => scheduler.retry(id),
    allowed: {
      ...{ completed: 'waiting', failed: 'waiting', cancelled: 'waiting', skipped: 'waiting' },
      expired: 'waiting',
    },
  },
  hold: {
    change: (scheduler, id) => scheduler.hold(id),
    allowed: { waiting: 'held', delayed: 'held', retrying: 'held' },
  },
  unhold: { change: (scheduler, id) => scheduler.unhold(id), allowed: { held: 'waiting' } },
  reschedule: {
    change: (scheduler, id) => scheduler.reschedule(id, { delay: '2h' }),
    body: { delay: '2h' },
    allowed: {
      ...{ waiting: 'delayed', delayed: 'delayed', retrying: 'retrying', held: 'held', blocked: 'blocked' },
    },
  },
};

describe('changing a job', () => {
  const database = useSharedDatabase();

  for (const [name, { change, body, allowed }] of Object.entries(ACTIONS)) {
    it(`with ${name} says whether it was changed, and its state [B27]`, async () => {
      const { scheduler } = manualScheduler(database);
      const { jobs } = database.collections;
      for (const state of STATE_NAMES) {
        const job = aJob(FIELDS[state]);
        await jobs.insertOne(job);
        const after = allowed[state];
        assert.deepEqual(
          await change(scheduler, job._id),
          after === undefined
            ? { result: 'refused', state }
            : { result: after === 'running' ? 'requested' : 'changed', state: after },
          state,
        );
        assert.equal((await scheduler.getJob(job._id))?.state, after ?? state);
        if (after === undefined) assert.deepEqual(await jobs.findOne({ _id: job._id }), job, state);
      }
      assert.deepEqual(await change(scheduler, 'nobody'), { result: 'notFound', state: null });
    });

    it(`with POST /jobs/{id}/${name} returns the same over HTTP [B27]`, async () => {
      const { scheduler } = manualScheduler(database);
      const server = await serveHttp(scheduler, { port: 0, token: TOKEN });
      try {
        const api = await ApiClient.open(server.address, TOKEN);
        const call = (id: string): ReturnType<ApiClient['call']> =>
          api.call(`${name}Job`, { params: { id }, ...(body !== undefined && { body }) });
        for (const state of STATE_NAMES) {
          const job = aJob(FIELDS[state]);
          await database.collections.jobs.insertOne(job);
          const response = await call(job._id);
          const after = allowed[state];
          if (after === undefined) {
            assert.deepEqual([response.status, response.body.code], [409, 'WRONG_STATE'], state);
            assert.match(response.body.detail, new RegExp(`^job '${job._id}' is ${state}: only `));
          } else {
            const result = after === 'running' ? 'requested' : 'changed';
            assert.deepEqual([response.status, response.body], [200, { id: job._id, result, state: after }]);
          }
        }
        const missing = await call('nobody');
        assert.deepEqual([missing.status, missing.body.code], [404, 'JOB_NOT_FOUND']);
      } finally {
        await server.close();
      }
    });
  }
});

describe('rescheduling a job', () => {
  const database = useSharedDatabase();

  it('moves it to an instant or by a delay, with the scheduler, the handle and its aliases [J7] [B27]', async () => {
    const { scheduler, clock } = manualScheduler(database, { timezone: 'Europe/Berlin' });
    const runs: Date[] = [];
    scheduler.registerHandler('work', () => runs.push(clock.now()));
    const handle = await scheduler.dispatch('work');
    const { id } = handle;
    const instant = new Date('2026-01-01T05:00:00Z');
    for (const [move, due] of [
      [() => scheduler.reschedule(id, { at: LATER }), LATER],
      [() => scheduler.reschedule(id, { at: '2026-01-01 06:00' }), instant],
      [() => scheduler.reschedule(id, { delay: '10m' }), timeAfter(600_000)],
      [() => handle.reschedule({ at: '2026-01-01 06:00' }), instant],
      [() => handle.reschedule({ delay: 5000 }), timeAfter(5000)],
      [() => handle.at(instant), instant],
      [() => handle.delay('1h'), LATER],
    ] as const) {
      assert.deepEqual(await move(), { result: 'changed', state: 'delayed' });
      assert.deepEqual((await scheduler.getJob(id))?.nextRunAt, due);
    }
    assert.equal(await scheduler.run(), 0);
    clock.advance(3_600_000);
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual(runs, [LATER]);
  });

  it('wakes a worker that has nothing else to do', async () => {
    const scheduler = database.scheduler({ pollInterval: '1h' });
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    const handle = await scheduler.dispatch('work', null, { delay: '1h' });
    await scheduler.reschedule(handle.id, { at: START });
    assert.equal((await handle.wait({ timeout: '20s' })).state, 'completed');
  });

  it('needs exactly one valid time, and changes nothing otherwise [B27]', async () => {
    const { scheduler } = manualScheduler(database);
    const { id } = await scheduler.dispatch('work');
    const before = await scheduler.getJob(id);
    for (const [when, message] of [
      [{}, /either `at` or `delay`/],
      [{ at: LATER, delay: 5 }, /either `at` or `delay`/],
      [{ at: 'soon' }, /at/],
      [{ delay: '-1s' }, /delay/],
      [{ when: LATER }, /when is not an option/],
      [LATER, /reschedule\(\)/],
      [undefined, /reschedule\(\)/],
    ] as const)
      await assert.rejects(scheduler.reschedule(id, when as never), { code: 'INVALID_ARGUMENT', message });
    await assert.rejects(scheduler.reschedule({ $gt: '' } as never, { delay: 1 }), {
      code: 'INVALID_ARGUMENT',
    });
    assert.deepEqual(await scheduler.getJob(id), before);
  });
});
