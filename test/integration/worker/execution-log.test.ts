import assert from 'node:assert/strict';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { nextEvent } from '../../support/events.js';
import { timeAfter, START } from '../../support/instants.js';

const DAY = 86_400_000;

describe('the execution log', () => {
  const database = useSharedDatabase();

  it('has one complete row per attempt [C10]', async () => {
    const { scheduler, clock } = manualScheduler(database, { workerId: 'me' });
    scheduler.registerHandler('work', (_, job) => {
      job.log(`line of attempt ${job.attempt}`);
      clock.advance(250);
      if (job.attempt === 1) throw Object.assign(new TypeError('broken'), { code: 'E_BROKEN' });
      return 'done';
    });
    const options = { queue: 'default', retries: { base: '10s', jitter: 'none' } } as const;
    const { id } = await scheduler.dispatch('work', null, options);
    await scheduler.run();
    clock.advance(10_000);
    await scheduler.run();

    const rows = await scheduler.getExecutions(id);
    const { jobs, executions } = database.collections;
    assert.equal(await executions.countDocuments(), 2);
    const [first, second] = rows;
    const { error, ...fields } = first!;
    assert.deepEqual(fields, {
      id: `${id}:1`,
      jobId: id,
      taskType: 'work',
      queue: 'default',
      attempt: 1,
      fence: 1,
      workerId: 'me',
      startedAt: START,
      finishedAt: timeAfter(250),
      duration: 250,
      outcome: 'retry',
      log: ['line of attempt 1'],
    });
    const stored = await executions.find().sort({ fence: 1 }).toArray();
    const tokens = stored.map(({ lockToken }) => lockToken);
    assert.match(tokens[0] ?? '', /^[0-9a-f-]{36}$/);
    assert.deepEqual(
      { name: error?.name, message: error?.message, code: error?.code },
      { name: 'TypeError', message: 'broken', code: 'E_BROKEN' },
    );
    assert.match(error!.stack!, /TypeError: broken\n\s+at .*execution-log\.test/s);

    assert.deepEqual(
      [second?.attempt, second?.fence, second?.outcome, second?.error, second?.log],
      [2, 2, 'completed', null, ['line of attempt 2']],
    );
    assert.notEqual(tokens[0], tokens[1], 'every claim has its own token');
    const job = await jobs.findOne({ _id: id });
    assert.deepEqual([job?.settledToken, job?.settledBy], [tokens[1], 'me']);
    assert.deepEqual([job?.startedAt, job?.finishedAt], [second?.startedAt, second?.finishedAt]);
    assert.deepEqual(job?.firstStartedAt, START);
  });

  it('ends rows without a job after a year [C10]', async () => {
    const indexes = await database.collections.executions.indexes();
    const byTime = indexes.find(({ key }) => Object.keys(key).join() === 'finishedAt');
    assert.equal(byTime?.expireAfterSeconds, (366 * DAY) / 1000);
  });

  it('has the row of an attempt before its event is emitted [C10]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    const rows = nextEvent(scheduler, 'job:complete').then(({ jobId }) => scheduler.getExecutions(jobId));
    await scheduler.dispatch('work');
    await scheduler.run();
    assert.equal((await rows).length, 1);
  });

  it('returns the last thousand attempts of a job, oldest first [C10]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    const { executions } = database.collections;
    const row = await executions.findOne({ jobId: id });
    const more = Array.from({ length: 1010 }, (_, index) => index + 2);
    await executions.insertMany(more.map((fence) => ({ ...row!, _id: `${id}:${fence}`, fence })));
    assert.deepEqual(
      (await scheduler.getExecutions(id)).map(({ fence }) => fence),
      Array.from({ length: 1000 }, (_, index) => index + 12),
    );
  });

  it('truncates long log lines and keeps at most a thousand [C10]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', (_, job) => {
      job.log('x'.repeat(10_000));
      for (let i = 0; i < 2000; i++) job.log(`line ${i}`);
    });
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    const [row] = await scheduler.getExecutions(id);
    assert.equal(row?.log.length, 1001);
    assert.equal(Buffer.byteLength(row.log[0]!), 4096);
    assert.match(row.log.at(-1)!, /more than 1000 lines/);
  });
});
