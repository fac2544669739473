import assert from 'node:assert/strict';
import { useDatabase } from '../../support/database.js';
import { withFailPoint } from '../../support/fail-point.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

describe('node dist/worker.js', () => {
  const db = useDatabase();
  afterEach(killWorkers);

  const start = (id: string, env: Record<string, string> = {}): Promise<WorkerProcess> =>
    WorkerProcess.start(id, { MONGODB_URI: db.uri, POLL_INTERVAL: '100', LOCK_TIMEOUT: '2s', ...env });

  async function exitOf(env: Record<string, string>): Promise<{ code: number | null; stderr: string }> {
    const worker = new WorkerProcess('w', env);
    const { code } = await worker.exited;
    return { code, stderr: worker.stderr };
  }

  it('is configured by environment variables, runs jobs and stops on SIGTERM [C13] [J17]', async () => {
    const worker = await start('w1', { CONCURRENCY: '3', QUEUES: 'mail, default' });
    const handle = await db.scheduler().dispatch('quick', { echo: 7 }, { queue: 'mail' });
    assert.equal((await handle.wait()).result, 7);
    const document = await db.collections.workers.findOne({ _id: 'w1' });
    assert.deepEqual(
      [document?.concurrency, document?.queues, document?.state],
      [3, ['mail', 'default'], 'Running'],
    );

    worker.signal('SIGTERM');
    assert.deepEqual(await worker.exited, { code: 0, signal: null });
    assert.equal((await db.collections.workers.findOne({ _id: 'w1' }))?.state, 'Stopped');
  });

  it('lets the running job end on SIGINT, starts no others and leaves nothing locked [J17]', async () => {
    const worker = await start('w1', { CONCURRENCY: '1' });
    const scheduler = db.scheduler();
    const running = await scheduler.dispatch('untilReleased');
    await worker.line(({ msg }) => msg === 'untilReleased started');
    const waiting = await scheduler.dispatch('quick');
    worker.signal('SIGINT');
    await worker.line(({ state }) => state === 'Stopping');
    await db.connection.collection<{ _id: string }>('released').insertOne({ _id: 'untilReleased' });
    assert.equal((await worker.exited).code, 0);
    assert.equal((await scheduler.getJob(running.id))?.status, 'COMPLETED');
    assert.equal((await scheduler.getJob(waiting.id))?.status, 'SCHEDULED');
    assert.equal(await db.collections.jobs.countDocuments({ lockToken: { $ne: null } }), 0);
  });

  it('exits with 1 and logs the unfinished job when a handler ignores its abort signal', async () => {
    const worker = await start('w1', { SHUTDOWN_GRACE: '400ms' });
    const { id } = await db.scheduler().dispatch('neverEnds');
    await worker.line(({ msg }) => msg === 'neverEnds started');
    worker.signal('SIGTERM');
    assert.equal((await worker.exited).code, 1);
    assert.ok(worker.lines.some(({ msg, jobId }) => msg.includes('left unfinished') && jobId === id));
  });

  it('exits at once on a second signal', async () => {
    const worker = await start('w1');
    await db.scheduler().dispatch('neverEnds');
    await worker.line(({ msg }) => msg === 'neverEnds started');
    worker.signal('SIGTERM');
    await worker.line(({ state }) => state === 'Stopping');
    // Within half a second, a second signal is taken for the same Ctrl-C that arrived twice.
    await new Promise((resolve) => setTimeout(resolve, 600));
    worker.signal('SIGTERM');
    assert.equal((await worker.exited).code, 1);
    assert.ok(worker.lines.every(({ state }) => state !== 'Stopped'));
  });

  it('exits with 2 and names every invalid environment variable', async () => {
    const { code, stderr } = await exitOf({
      MONGODB_URI: db.uri,
      CONCURRENCY: 'many',
      POLL_INTERVAL: '-1',
      QUEUES: ' , ',
    });
    assert.equal(code, 2);
    assert.match(stderr, /CONCURRENCY must be a whole number.*'many'/);
    assert.match(stderr, /POLL_INTERVAL/);
    assert.match(stderr, /QUEUES/);
  });

  it('exits with 2 when the handlers cannot be loaded or MONGODB_URI is missing', async () => {
    const missing = await exitOf({ MONGODB_URI: db.uri, HANDLERS: 'no/such/module.mjs' });
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /HANDLERS.*no\/such\/module\.mjs/);
    const withoutUri = await exitOf({ MONGODB_URI: '' });
    assert.equal(withoutUri.code, 2);
    assert.match(withoutUri.stderr, /MONGODB_URI is missing/);
  });

  it('exits with 3 when the connection to MongoDB is lost while it starts', async () => {
    const lost = { commands: ['find', 'update'], collection: 'schedules', how: 'noConnection' } as const;
    const env = { MONGODB_URI: db.uri, HANDLERS: 'test/fixtures/schedules.mjs', SCHEDULES: 'good' };
    const { code, stderr } = await withFailPoint(db, lost, () => exitOf(env));
    assert.equal(code, 3, stderr);
  });

  it('exits with 3 when MongoDB stays unreachable, logs each failure and never logs the password', async () => {
    const unreachable = new WorkerProcess('w', {
      MONGODB_URI: 'mongodb://ada:secret-word@127.0.0.1:1/chronos',
      CONNECT_TIMEOUT: '6s',
      HANDLERS: 'dist/examples/handlers.js',
    });
    assert.equal((await unreachable.exited).code, 3);
    assert.ok(unreachable.lines.some(({ msg }) => msg.includes('connect failed')));
    assert.match(unreachable.stderr, /MongoDB could not be reached/);
    assert.doesNotMatch(unreachable.stderr + JSON.stringify(unreachable.lines), /secret-word/);
  });
});
