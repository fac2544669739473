import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ROOT } from '../../support/chronos-command.js';
import { useDatabase } from '../../support/database.js';
import { killWorkers, WorkerProcess, type LogLine } from '../../support/worker-process.js';

const TRACED = { NODE_OPTIONS: '--import ./test/fixtures/tracing.mjs' };
const [PRODUCER, CONSUMER, ERROR] = [3, 4, 2];

interface SpanLine extends LogLine {
  name: string;
  kind: number;
  traceId: string;
  spanId: string;
  parentId: string | null;
  links: string[];
  attributes: Record<string, unknown>;
  status: { code: number; message?: string };
  events: { name: string; attributes: Record<string, unknown> }[];
}

describe('traces', () => {
  const db = useDatabase();
  afterEach(killWorkers);

  const start = (env: Record<string, string> = TRACED): Promise<WorkerProcess> =>
    WorkerProcess.start('w1', {
      MONGODB_URI: db.uri,
      HANDLERS: 'test/fixtures/traced-handlers.mjs',
      POLL_INTERVAL: '100',
      ...env,
    });

  /** Runs a process that dispatches jobs, and returns its spans. */
  async function runShop(env: Record<string, string> = TRACED): Promise<SpanLine[]> {
    const { stdout } = await promisify(execFile)(process.execPath, ['test/fixtures/traced-shop.mjs'], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], MONGODB_URI: db.uri, ...env },
    });
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as SpanLine);
  }

  /** The span of an attempt of this job. */
  async function attemptSpan(worker: WorkerProcess, jobId: unknown): Promise<SpanLine> {
    const line = await worker.line(
      ({ msg, kind, attributes }) =>
        msg === 'span' &&
        kind === CONSUMER &&
        (attributes as SpanLine['attributes'])['messaging.message.id'] === jobId,
    );
    return line as SpanLine;
  }

  it('of a job connect its dispatch in one process with its handler in another [B13]', async () => {
    const spans = await runShop();
    const checkout = spans.find(({ name }) => name === 'checkout');
    const [send] = spans.filter(({ kind }) => kind === PRODUCER);
    assert.ok(checkout !== undefined && send !== undefined);
    const jobId = send.attributes['messaging.message.id'];
    assert.equal(send.name, 'send default');
    assert.deepEqual([send.traceId, send.parentId], [checkout.traceId, checkout.spanId]);
    assert.deepEqual(send.attributes, {
      'messaging.system': 'chronos',
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'default',
      'messaging.message.id': jobId,
      'chronos.task_type': 'pay',
    });
    const stored = await db.collections.jobs.findOne({ _id: String(jobId) });
    assert.equal(stored?.trace, `00-${send.traceId}-${send.spanId}-01`);

    const worker = await start();
    const attempt = await attemptSpan(worker, jobId);
    assert.equal(attempt.name, 'process default');
    assert.deepEqual([attempt.traceId, attempt.parentId], [send.traceId, send.spanId]);
    assert.deepEqual(attempt.links, [send.spanId]);
    assert.deepEqual(attempt.attributes, {
      'messaging.system': 'chronos',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': 'default',
      'messaging.message.id': jobId,
      'messaging.client.id': 'w1',
      'chronos.task_type': 'pay',
      'chronos.attempt': 1,
      'chronos.fence': 1,
      'chronos.outcome': 'completed',
    });
    assert.equal(attempt.status.code, 0);

    const own = await worker.line(
      ({ name, parentId }) => name === 'charge the card' && parentId === attempt.spanId,
    );
    assert.equal(own['traceId'], send.traceId, 'a span of the handler is a child of its attempt');
    for (const msg of ['pay started', /^pay completed/]) {
      const line = await worker.line((one) => one.jobId === jobId && new RegExp(msg).test(one.msg));
      assert.equal(line['traceId'], send.traceId, 'log lines have the trace id');
    }
  });

  it('of a failed attempt have the status, error type and exception [B13]', async () => {
    const spans = await runShop();
    const declined = spans.filter(({ kind }) => kind === PRODUCER)[1];
    const worker = await start();
    const attempt = await attemptSpan(worker, declined?.attributes['messaging.message.id']);
    assert.equal(attempt.traceId, declined?.traceId);
    assert.deepEqual(attempt.status, { code: ERROR, message: 'the card was declined' });
    assert.equal(attempt.attributes['error.type'], 'RangeError');
    assert.equal(attempt.attributes['chronos.outcome'], 'failed');
    const [exception] = attempt.events;
    assert.equal(exception?.name, 'exception');
    assert.equal(exception.attributes['exception.message'], 'the card was declined');
  });

  it('have one span for jobs that are dispatched together, and start with each job of a schedule [B13]', async () => {
    const spans = await runShop();
    const batch = spans.find(({ attributes }) => attributes['messaging.batch.message_count'] === 2);
    assert.equal(batch?.kind, PRODUCER);
    const jobs = await db.collections.jobs
      .find({ trace: `00-${batch.traceId}-${batch.spanId}-01` })
      .toArray();
    assert.equal(jobs.length, 2);

    const worker = await start();
    const { parentId, traceId } = await attemptSpan(worker, jobs[0]?._id);
    assert.deepEqual([parentId, traceId], [batch.spanId, batch.traceId]);
    await db.scheduler().addSchedule({ cron: '* * * * * *', taskType: 'pay', id: 'each second' });
    const scheduled = (await worker.line(
      ({ attributes }) =>
        (attributes as SpanLine['attributes'] | undefined)?.['chronos.schedule'] === 'each second',
    )) as SpanLine;
    assert.deepEqual([scheduled.parentId, scheduled.links], [null, []]);
    assert.notEqual(scheduled.traceId, batch.traceId);
    const jobId = scheduled.attributes['messaging.message.id'];
    const line = await worker.line((one) => one.jobId === jobId && one.msg === 'pay started');
    assert.equal(line['traceId'], scheduled.traceId);
  });

  it('are neither stored nor logged without an SDK [B13]', async () => {
    assert.deepEqual(await runShop({}), []);
    assert.equal(await db.collections.jobs.countDocuments({ trace: { $exists: true } }), 0);
    const worker = await start({});
    const line = await worker.line(({ msg }) => msg === 'pay started');
    assert.ok(!('traceId' in line));
  });
});
