import assert from 'node:assert/strict';
import type { Finding, Scheduler } from '../../../src/index.js';
import { createStore } from '../../../src/store/store.js';
import { useDatabase } from '../../support/database.js';
import { countEvents, nextEvent, signal } from '../../support/events.js';
import { aJob } from '../../support/factories/job.js';
import { aWorker } from '../../support/factories/worker.js';
import { timeAfter } from '../../support/instants.js';
import { advanceUntilSettled, manualScheduler } from '../../support/manual-scheduler.js';
import { assertBounded } from '../../support/query-bounds.js';
import { profileQueries } from '../../support/query-profiler.js';

const MINUTE = 60_000;

describe('work that hangs', () => {
  const database = useDatabase();

  async function findingOf(scheduler: Scheduler, name: string): Promise<Finding> {
    const found = (await scheduler.operations.doctor()).find(({ check }) => check === name);
    assert.ok(found !== undefined, name);
    return found;
  }

  it('is reported by its worker and by doctor long before its timeout, until it ends [B13] [B18]', async () => {
    const { scheduler, clock } = manualScheduler(database, { concurrency: 2 });
    const go = signal();
    scheduler.registerHandler('send', (to: unknown) => (to === 'nobody' ? go.promise : undefined));
    await scheduler.start();
    const usual = nextEvent(scheduler, 'job:complete');
    await scheduler.dispatch('send', 'somebody');
    await advanceUntilSettled(clock, usual, 10);

    const started = countEvents(scheduler, 'job:start', 2);
    const typeHangs = nextEvent(scheduler, 'type:hanging');
    const queueHangs = nextEvent(scheduler, 'queue:hanging');
    // Two take all slots, and the third waits for one.
    for (let job = 0; job < 3; job++) await scheduler.dispatch('send', 'nobody');
    await advanceUntilSettled(clock, started, 10);
    assert.equal((await findingOf(scheduler, 'hangingJobs')).level, 'ok');
    const { taskType, running, since, usualDuration } = await advanceUntilSettled(clock, typeHangs);
    assert.deepEqual({ taskType, running }, { taskType: 'send', running: 2 });
    assert.ok(usualDuration !== null && usualDuration < 1000, String(usualDuration));
    const hungFor = clock.now().getTime() - since.getTime();
    assert.ok(hungFor >= MINUTE && hungFor < 5 * MINUTE, String(hungFor));
    const jobs = await findingOf(scheduler, 'hangingJobs');
    assert.equal(jobs.level, 'warning');
    assert.match(jobs.finding, /: send \(2 running, \w+ for \d+ (s|min), usually \d+ ms\)\.$/);
    assert.equal((await findingOf(scheduler, 'hangingQueues')).level, 'ok');

    assert.equal((await advanceUntilSettled(clock, queueHangs)).queue, 'default');
    const queues = await findingOf(scheduler, 'hangingQueues');
    assert.equal(queues.level, 'warning');
    assert.match(queues.finding, /: default\.$/);

    const recovered = Promise.all([
      nextEvent(scheduler, 'type:recovered'),
      nextEvent(scheduler, 'queue:recovered'),
    ]);
    go.fire();
    const [type, queue] = await advanceUntilSettled(clock, recovered);
    assert.deepEqual([type.taskType, queue.queue], ['send', 'default']);
    for (const name of ['hangingJobs', 'hangingQueues'])
      assert.equal((await findingOf(scheduler, name)).level, 'ok', name);
  });

  it('is compared with half of the timeout while nothing of the type has completed [B18]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { jobs, workers } = database.collections;
    const running = {
      status: 'RUNNING',
      startedAt: timeAfter(0),
      lockedUntil: timeAfter(60 * MINUTE),
    } as const;
    await jobs.insertMany([
      aJob({ _id: 'a', ...running }),
      aJob({ _id: 'b', ...running, taskType: 'quick', timeout: 4 * MINUTE }),
    ]);
    const advance = async (ms: number): Promise<string> => {
      clock.advance(ms);
      await workers.replaceOne({ _id: 'worker' }, aWorker({ heartbeatAt: clock.now() }), { upsert: true });
      return (await findingOf(scheduler, 'hangingJobs')).finding;
    };
    assert.match(await advance(2 * MINUTE - 1), /^No job/);
    assert.match(await advance(1), /: quick \(1 running, b for 2 min\)\.$/);
    assert.match(await advance(28 * MINUTE), /: quick \(.*, work \(1 running, a for 30 min\)\.$/);
  });

  it('is not expected of a worker that has just started, is draining, or cannot run the jobs [B18]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { jobs, workers } = database.collections;
    await jobs.insertOne(aJob());
    clock.advance(10 * MINUTE);
    const heartbeatAt = clock.now();
    for (const [fields, level] of [
      [{}, 'warning'],
      [{ startedAt: timeAfter(6 * MINUTE) }, 'ok'],
      [{ isDraining: true }, 'ok'],
      [{ taskTypes: ['other'] }, 'ok'],
    ] as const) {
      await workers.deleteMany();
      await workers.insertOne(aWorker({ heartbeatAt, ...fields }));
      assert.equal((await findingOf(scheduler, 'hangingQueues')).level, level, JSON.stringify(fields));
    }
  });

  it('is found without reading all jobs or the whole execution log [B18] [C2]', async () => {
    const { jobs, executions } = database.collections;
    const store = createStore(database.stored);
    const now = timeAfter(0);
    await jobs.insertMany(Array.from({ length: 3000 }, (_, i) => aJob({ _id: `job ${i}`, nextRunAt: now })));
    const row = { jobId: 'a', taskType: 'work', queue: 'default', attempt: 1, lockToken: 't', workerId: 'w' };
    await executions.insertMany(
      Array.from({ length: 5000 }, (_, i) => ({
        ...{ ...row, _id: `a:${i}`, fence: i, startedAt: now, finishedAt: timeAfter(i), duration: 5 },
        ...{ outcome: 'completed' as const, error: null, log: [] },
      })),
    );
    const taskTypes = ['other', 'work'];
    const overdue = await profileQueries(database, ['chronos_jobs'], async () => {
      const query = { queues: ['default', 'elsewhere'], taskTypes, dueBefore: now };
      assert.deepEqual(await store.findOverdueQueues(query), [{ queue: 'default', dueAt: now }]);
      assert.deepEqual(await store.findOverdueQueues({ ...query, dueBefore: timeAfter(-1) }), []);
    });
    assertBounded(overdue, 30, 1);
    const log = await profileQueries(database, ['chronos_executions'], async () => {
      assert.deepEqual(await store.findUsualDurations(), new Map([['work', 5]]));
      assert.deepEqual(await store.findIdleQueues(['default', 'elsewhere'], timeAfter(4900)), ['elsewhere']);
    });
    assertBounded(log, 2000 + 150, 2000 + 150);
  });
});
