import assert from 'node:assert/strict';
import { useDatabase } from '../../support/database.js';
import { withFailPoint } from '../../support/fail-point.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

interface JournalEntry {
  worker: string;
  schedule: string;
}

describe('node dist/worker.js run', () => {
  const db = useDatabase();
  afterEach(killWorkers);

  /** Starts a process that makes one pass. */
  function pass(id: string, schedules: string, env: Record<string, string> = {}): WorkerProcess {
    return new WorkerProcess(id, {
      MONGODB_URI: db.uri,
      HANDLERS: 'test/fixtures/schedules.mjs',
      SCHEDULES: schedules,
      // WorkerProcess takes no arguments for the process.
      NODE_OPTIONS: "--import=data:text/javascript,process.argv[2]='run'",
      ...env,
    });
  }

  async function exitOf(worker: WorkerProcess): Promise<{ code: number | null; stderr: string }> {
    const { code } = await worker.exited;
    return { code, stderr: worker.stderr };
  }

  /** Stores the definitions as if that had been an hour ago: each has one due occurrence. */
  async function makeDue(schedules: string): Promise<void> {
    assert.deepEqual(await exitOf(pass('first', schedules)), { code: 0, stderr: '' });
    const earlier = (field: string): object => ({ [field]: { $subtract: [`$${field}`, 3_600_000] } });
    await db.collections.schedules.updateMany({}, [
      { $set: { ...earlier('anchor'), ...earlier('nextRunAt') } },
    ]);
  }

  const startsInJournal = (): Promise<JournalEntry[]> =>
    db.connection.collection('journal').find({ kind: 'start' }).sort({ at: 1 }).toArray() as never;
  const reported = (worker: WorkerProcess): string[] =>
    worker.lines.filter(({ result }) => result !== undefined).map(({ msg }) => msg);
  const locked = (): Promise<number> => db.collections.jobs.countDocuments({ lockToken: { $ne: null } });

  it('runs what is due, logs every outcome, leaves nothing locked and exits with 0 [Y1] [D6]', async () => {
    await makeDue('good,queued');
    const cron = pass('cron', 'good,queued');
    assert.deepEqual(await exitOf(cron), { code: 0, stderr: '' });
    assert.deepEqual(reported(cron), ['good: run', 'queued: enqueued']);
    assert.deepEqual(
      (await startsInJournal()).map(({ schedule, worker }) => [schedule, worker]),
      [['good', 'cron']],
    );
    const jobs = await db.collections.jobs.find().sort({ _id: 1 }).toArray();
    assert.deepEqual(
      jobs.map(({ schedule, status, queue }) => [schedule, status, queue]),
      [
        ['good', 'COMPLETED', 'default'],
        ['queued', 'SCHEDULED', 'reports'],
      ],
    );
    assert.equal(await locked(), 0);
  });

  it('exits with 4 when a job failed, after it has run the others [Y1] [Y8]', async () => {
    await makeDue('afterBad,bad,good');
    const cron = pass('cron', 'afterBad,bad,good');
    assert.deepEqual(await exitOf(cron), { code: 4, stderr: '' });
    assert.deepEqual(reported(cron), ['bad: failed (broken)', 'afterBad: run', 'good: run']);
    assert.deepEqual(
      (await startsInJournal()).map(({ schedule }) => schedule),
      ['bad', 'afterBad', 'good'],
    );
    // The next pass does not report the failure again.
    assert.equal((await pass('next', 'afterBad,bad,good').exited).code, 0);
  });

  it('exits with 4 when a due job failed that was dispatched, not created by a definition [Y1]', async () => {
    await makeDue('good,bad');
    await db.collections.schedules.updateOne({ _id: 'bad' }, { $set: { nextRunAt: null } });
    await db.scheduler().dispatch('bad', null, { retries: { base: '1h' } });
    const cron = pass('cron', 'good,bad');
    assert.equal((await cron.exited).code, 4);
    assert.match(reported(cron).join(), /good: run/);
    assert.ok(cron.lines.some(({ executed, failed }) => executed === 1 && failed === 1));
  });

  it('exits with 2 and names the cycle when definitions depend on each other [D9]', async () => {
    const { code, stderr } = await exitOf(pass('cron', 'good,circle'));
    assert.equal(code, 2);
    assert.match(stderr, /circle → circle/);
    assert.doesNotMatch(stderr, /keeps the process alive/);
  });

  it('exits with 2 when the first argument is not a mode', async () => {
    const wrong = pass('cron', 'good', {
      NODE_OPTIONS: "--import=data:text/javascript,process.argv[2]='once'",
    });
    const { code, stderr } = await exitOf(wrong);
    assert.equal(code, 2);
    assert.match(stderr, /work, run, daemon.*'once'/);
  });

  it('exits with 3 when the connection to MongoDB is lost during the pass [Y12]', async () => {
    const lost = { commands: ['find', 'update'], collection: 'schedules', how: 'noConnection' } as const;
    const { code, stderr } = await withFailPoint(db, lost, () => exitOf(pass('cron', 'good')));
    assert.equal(code, 3, stderr);
    assert.match(stderr, /MongoNetworkError/);
  });

  it('exits with 3 and prints why when MongoDB cannot be reached [Y12]', async () => {
    const cron = pass('cron', 'good', {
      MONGODB_URI: 'mongodb://127.0.0.1:1/chronos',
      CONNECT_TIMEOUT: '1s',
    });
    const { code, stderr } = await exitOf(cron);
    assert.equal(code, 3);
    assert.match(stderr, /MongoDB could not be reached/);
    assert.deepEqual(reported(cron), []);
  });

  it('runs each occurrence once when many processes run next to a worker [J19] [Y12] [F3]', async () => {
    await makeDue('good,bad,queued');
    const env = { LOCK_TIMEOUT: '2s', QUEUES: 'default,reports' };
    const worker = pass('worker', 'good,bad,queued', { ...env, NODE_OPTIONS: '' });
    const passes = Array.from({ length: 5 }, (_, index) => pass(`cron-${index}`, 'good,bad,queued', env));
    const codes = await Promise.all(passes.map(async (one) => (await one.exited).code));
    assert.deepEqual(
      codes.filter((code) => code !== 0 && code !== 4),
      [],
    );
    await waitUntil(
      'the two good ones are completed',
      async () => (await db.collections.jobs.countDocuments({ attempts: 0, status: 'COMPLETED' })) === 2,
    );
    const starts = await startsInJournal();
    for (const name of ['good', 'queued'])
      assert.equal(starts.filter(({ schedule }) => schedule === name).length, 1, name);
    assert.equal(await db.collections.jobs.countDocuments(), 3);
    assert.equal(await db.collections.skips.countDocuments(), 0);
    worker.signal('SIGTERM');
    assert.equal((await worker.exited).code, 0);
  });

  it('ends running jobs on SIGTERM after the grace time, starts no others, leaves nothing locked and exits [J17]', async () => {
    await makeDue('long,afterLong');
    const cron = pass('cron', 'long,afterLong', { SHUTDOWN_GRACE: '1s' });
    await cron.line(({ msg }) => msg === 'long started');
    cron.signal('SIGTERM');
    assert.equal((await cron.exited).code, 1, 'not everything was done');
    assert.deepEqual(
      (await startsInJournal()).map(({ schedule }) => schedule),
      ['long'],
    );
    assert.equal(await locked(), 0);
    // The next pass runs what was left.
    await db.connection.collection<{ _id: string }>('released').insertOne({ _id: 'long' });
    assert.equal((await pass('next', 'long,afterLong').exited).code, 0);
    const jobs = await db.collections.jobs.find().sort({ _id: 1 }).toArray();
    assert.deepEqual(
      jobs.map(({ schedule, status }) => [schedule, status]),
      [
        ['afterLong', 'COMPLETED'],
        ['long', 'COMPLETED'],
      ],
    );
  });

  it('exits with 1 and names the job when SIGTERM leaves a handler behind [J17]', async () => {
    await makeDue('stubborn');
    const cron = pass('cron', 'stubborn', { SHUTDOWN_GRACE: '1s' });
    await cron.line(({ msg }) => msg === 'stubborn started');
    cron.signal('SIGTERM');
    assert.equal((await cron.exited).code, 1);
    assert.match(cron.lines.map(({ msg }) => msg).join('\n'), /stubborn was left unfinished/);
  });

  it('compares environments with NODE_ENV, development by default [D8]', async () => {
    const anywhere = pass('cron', 'production');
    await anywhere.exited;
    assert.deepEqual(reported(anywhere), [
      'production: skipped (environment: runs in production, this is development)',
    ]);
    const there = pass('cron', 'production', { NODE_ENV: 'production' });
    assert.equal((await there.exited).code, 0);
    assert.match(reported(there).join(), /^production: /);
    assert.doesNotMatch(reported(there).join(), /environment:/);
  });
});
