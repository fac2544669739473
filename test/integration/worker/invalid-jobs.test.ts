import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import type { SchedulerEvents } from '../../../src/index.js';
import { aJob } from '../../support/factories/job.js';
import { driverLike, DUE, EXPIRED, LOCKED, MAX_LONG } from '../../support/invalid-documents.js';
import { useDatabase } from '../../support/database.js';
import { START, timeAfter } from '../../support/instants.js';
import {
  advanceUntilSettled,
  manualScheduler,
  withoutRenewalThread,
} from '../../support/manual-scheduler.js';
import { countEvents, nextEvent, recordEvents } from '../../support/events.js';
import { waitForChangeStreams } from '../../support/change-streams.js';
import { jsonText } from '../../../src/domain/text.js';
import { toStoredJob } from '../../../src/store/jobs/stored-job.js';
import { createStore } from '../../../src/store/store.js';

describe('a malformed stored job [B19]', () => {
  const database = useDatabase();

  function insert(fields: mongo.Document): Promise<unknown> {
    const all: [string, unknown][] = Object.entries({ ...toStoredJob(aJob()), ...fields });
    const document = Object.fromEntries(all.filter(([, value]) => value !== undefined));
    return database.connection
      .collection('chronos_jobs')
      .insertOne(document, { bypassDocumentValidation: true });
  }

  function createWorker() {
    const { scheduler, clock } = manualScheduler(database, { retries: { max: 1 } });
    const reports: SchedulerEvents['job:invalid'][] = [];
    scheduler.registerHandler('work', () => undefined);
    scheduler.on('job:invalid', (event) => reports.push(event));
    return { scheduler, clock, reports };
  }

  it('ends FAILED with a reason, is reported and counted once, and the jobs around it run', async () => {
    const { scheduler, reports } = createWorker();
    await insert({ _id: 'first', nextRunAt: timeAfter(-2000) });
    for (const [name, fields] of Object.entries(DUE))
      await insert({ _id: name, nextRunAt: timeAfter(-1000), ...fields });
    await insert({ _id: 'last' });
    assert.equal(await scheduler.run(100), 2);
    for (const id of ['first', 'last']) assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
    assert.equal(reports.length, Object.keys(DUE).length);
    assert.deepEqual(reports.at(-1)?.count, reports.length);
    const failed = await database.connection.collection('chronos_jobs').find({ status: 'FAILED' }).toArray();
    assert.equal(failed.length, reports.length);
    for (const { _id, error } of failed) {
      const id: unknown = _id;
      const name = typeof id === 'string' ? id : jsonText(id);
      const [field = ''] = Object.keys(DUE[name] ?? { _id }).slice(-1);
      const { code, message } = error as { code: string; message: string };
      assert.equal(code, 'INVALID_JOB');
      assert.match(message, new RegExp(`the stored job is malformed: ${field} (must|is missing)`), name);
    }
    const finding = (await scheduler.operations.doctor()).find(({ check }) => check === 'invalidJobs');
    assert.equal(finding?.level, 'warning');
    assert.match(finding?.finding ?? '', /malformed and did not run: .* and more\./);
  });

  it('with an expired lock ends FAILED, and the sweep recovers the others', async () => {
    const { scheduler, clock, reports } = createWorker();
    const expired = { ...LOCKED, status: 'RUNNING', lockedUntil: timeAfter(-1000) };
    for (const [name, fields] of Object.entries(EXPIRED)) await insert({ _id: name, ...expired, ...fields });
    await insert({ _id: 'healthy', ...expired, lockedUntil: timeAfter(-500) });
    await insert({ _id: 'never expires', ...expired, lockedUntil: undefined });
    const complete = countEvents(scheduler, 'job:complete', 2);
    await scheduler.start();
    await advanceUntilSettled(clock, complete);
    for (const id of ['healthy', 'never expires'])
      assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED', id);
    assert.deepEqual(reports.map(({ jobId }) => jobId).toSorted(), Object.keys(EXPIRED).toSorted());
    assert.equal(
      await database.connection.collection('chronos_jobs').countDocuments({ lockToken: { $exists: true } }),
      0,
    );
  });

  it('does not keep a worker with one slot from claiming the next job', async () => {
    const { scheduler, clock, reports } = createWorker();
    const single = database.scheduler({ clock, concurrency: 1, lockTimeout: '1d' });
    single.registerHandler('work', () => undefined);
    await insert({ _id: 'bad', fence: MAX_LONG, nextRunAt: timeAfter(-2000) });
    await insert({ _id: 'worse', maxRunningTime: 5, firstStartedAt: 'x', nextRunAt: timeAfter(-1000) });
    await insert({ _id: 'good' });
    assert.equal(await single.run(1), 1);
    assert.equal((await single.getJob('good'))?.status, 'COMPLETED');
    for (const id of ['bad', 'worse']) assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
    assert.equal(reports.length, 0, 'another scheduler ended them');
  });

  it('that expired before they were claimed do not keep others from expiring', async () => {
    const { scheduler, clock } = createWorker();
    const ended = countEvents(scheduler, 'job:expired', 1);
    const expired = { expiresAt: timeAfter(-1000), taskType: 'unknown' };
    await insert({ _id: 'bad', ...expired, fence: MAX_LONG });
    await insert({ _id: 'good', ...expired });
    await scheduler.start();
    await advanceUntilSettled(clock, ended);
    assert.equal((await scheduler.getJob('good'))?.state, 'expired');
    assert.equal((await scheduler.getJob('bad'))?.status, 'FAILED');
  });

  it('is left alone if it changes before it is ended', async () => {
    const { scheduler, reports } = createWorker();
    await insert({ _id: 'bad', timeout: 'x' });
    const store = createStore(database.stored);
    const found = await store.findJob('bad');
    const { jobs } = database.stored;
    await jobs.updateOne({ _id: 'bad' }, { $set: { status: 'PENDING' } });
    assert.equal(await store.failInvalid(found!, new Error('malformed'), 'me', START), false);
    assert.equal(await scheduler.run(), 0);
    assert.equal(
      (await scheduler.getJob('bad'))?.invalid,
      "timeout must be a number of milliseconds from 0 to 100 years, got 'x'",
    );
    assert.deepEqual(reports, []);
    assert.equal((await scheduler.operations.explainJob('bad'))?.check, 'invalidJob');
  });

  it('says what is wrong when a person cancels or retries it', async () => {
    const { scheduler } = createWorker();
    await insert({ _id: 'waits', fence: MAX_LONG });
    await insert({ _id: 'failed', fence: MAX_LONG, status: 'FAILED', finishedAt: START });
    const expected = { code: 'INVALID_JOB', message: /cannot be changed.* fence must be a whole number/ };
    await assert.rejects(scheduler.cancel('waits'), expected);
    await assert.rejects(scheduler.retry('failed'), expected);
  });

  it('ends FAILED before it is claimed if its cancelRequested is malformed', async () => {
    const { scheduler, reports } = createWorker();
    await insert({ _id: 'bad', cancelRequested: 'x' });
    assert.equal(await scheduler.run(), 0);
    assert.match(reports[0]?.reason ?? '', /cancelRequested must be \{ reason, at \}, got 'x'/);
  });

  it('that MongoDB does not let the sweep recover does not keep others from it', async () => {
    const { scheduler } = createWorker();
    const expired = { ...LOCKED, status: 'RUNNING', lockedUntil: timeAfter(-1000) };
    const errors = recordEvents(scheduler, 'worker:error');
    // There is no room left for an error in the document.
    await insert({ _id: 'a', ...expired, payload: 'x'.repeat((1 << 24) - 700) });
    await insert({ _id: 'b', ...expired });
    await scheduler.run();
    assert.notEqual((await scheduler.getJob('b'))?.status, 'RUNNING');
    const [{ event } = {}] = errors;
    assert.deepEqual(
      errors.map(({ event }) => (event as SchedulerEvents['worker:error']).subject),
      ['a'],
      String((event as SchedulerEvents['worker:error'] | undefined)?.error),
    );
  });

  it('does not break the change stream', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '1h' });
    scheduler.registerHandler('work', () => undefined);
    const errors = recordEvents(scheduler, 'worker:error');
    await scheduler.start();
    await waitForChangeStreams(database, 1);
    await insert({ _id: 'text', nextRunAt: 'soon' });
    await insert({ _id: driverLike('ObjectId'), nextRunAt: timeAfter(3_600_000) });
    await insert({ _id: 'far', nextRunAt: new mongo.BSON.Long(0), priority: 'x' });
    const complete = nextEvent(scheduler, 'job:complete');
    await insert({ _id: 'good', nextRunAt: new Date() });
    assert.equal((await complete).jobId, 'good');
    assert.deepEqual(errors, []);
  });

  it('that waits for a list instead of a schedule is found by the schedule', async () => {
    await insert({ _id: 'bad', status: 'PENDING', waitingFor: ['nightly', 'other'] });
    const store = createStore(database.stored);
    assert.deepEqual(await store.findWaitedFor(['nightly', 'daily']), ['nightly']);
  });

  it('is named by doctor if no claim can find it', async () => {
    const { scheduler } = createWorker();
    await insert({ _id: 'never', nextRunAt: '2026-01-01' });
    assert.equal(await scheduler.run(), 0);
    const finding = (await scheduler.operations.doctor()).find(({ check }) => check === 'invalidJobs');
    assert.match(finding?.finding ?? '', /never/);
    const explanation = await scheduler.operations.explainJob('never');
    assert.match(explanation?.sentence ?? '', /nextRunAt must be a date.*No worker finds it/);
  });

  it('is listed, and shown among the dead jobs, which can be retried', async () => {
    const { scheduler } = createWorker();
    const dead = { status: 'FAILED', finishedAt: START };
    await insert({ _id: 'a', ...dead });
    await insert({ _id: 'b', ...dead, finishedAt: 'text' });
    await insert({ _id: 'c', ...dead, error: 'text', createdAt: 'text' });
    // A condition on a time matches an array of times. It is only in lists that are ordered by id.
    for (const id of ['d', 'e']) await insert({ _id: id, ...dead, finishedAt: [START] });
    const strange = driverLike('ObjectId');
    await insert({ _id: strange, ...dead });
    const { items } = await scheduler.operations.listDead();
    const strangeId = '{_bsontype:ObjectId,toString:x,toHexString:x}';
    assert.deepEqual(items.map(({ id }) => id).toSorted(), ['a', 'b', 'c', strangeId]);
    assert.deepEqual(
      items
        .filter(({ invalid }) => invalid !== null)
        .map(({ id }) => id)
        .toSorted(),
      ['b', 'c', strangeId],
    );
    assert.equal((await scheduler.operations.retryDead({})).changed, 3);
    assert.equal(await scheduler.run(), 2, 'createdAt of c is still text');
  });
});
