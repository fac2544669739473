import assert from 'node:assert/strict';
import { type HttpServer, serveHttp } from '../../../src/http/server.js';
import type { Scheduler } from '../../../src/index.js';
import { nextEvent } from '../../support/events.js';
import { DUE, EXPIRED } from '../../support/invalid-documents.js';
import { toStoredJob } from '../../../src/store/jobs/stored-job.js';
import { aJob } from '../../support/factories/job.js';
import { aWorker } from '../../support/factories/worker.js';
import { type ResponseBody, ApiClient } from '../../support/api-client.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { waitUntil } from '../../support/wait-until.js';

const TOKEN = 'a-token-to-operate-with';
const READ_TOKEN = 'a-token-to-read-with';

describe('the HTTP API, used by a client generated from its OpenAPI document', () => {
  const database = useSharedDatabase();
  let scheduler: Scheduler;
  let server: HttpServer;
  let api: ApiClient;

  beforeEach(async () => {
    scheduler = database.scheduler(withoutRenewalThread);
    scheduler.registerHandler('works', (payload: unknown) => payload);
    scheduler.registerHandler('fails', () => Promise.reject(new Error('broken')));
    scheduler.schedule('nightly', () => undefined).daily();
    server = await serveHttp(scheduler, { port: 0, token: TOKEN, readToken: READ_TOKEN });
    api = await ApiClient.open(server.address, TOKEN);
  });

  afterEach(() => server.close());

  async function failed(): Promise<string> {
    const { id } = await scheduler.dispatch('fails', { n: 1 }, { retries: { max: 1 } });
    await scheduler.run();
    return id;
  }

  it('describes every operation with a name, a summary, closed schemas and its problems', () => {
    assert.ok(api.operations.size >= 35);
    for (const { operationId, summary, path, parameters, body, responses, role } of api.operations.values()) {
      assert.match(operationId, /^[a-z]\w+$/);
      assert.ok(summary.length > 5, operationId);
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const inPath = parameters.filter((one) => one.in === 'path').map(({ name }) => name);
      assert.deepEqual(inPath, named, operationId);
      for (const { schema, name } of parameters)
        assert.ok(schema['type'] !== undefined, `${operationId} ${name}`);
      if (body !== undefined) assert.equal(body['additionalProperties'], false, operationId);
      const isHealth = path === '/healthz' || path === '/readyz';
      assert.equal(role === undefined, isHealth, operationId);
      if (!isHealth) assert.ok(responses['401'], `${operationId} has no 401`);
      if (role === 'operate') assert.ok(responses['403'] && responses['415'], operationId);
    }
  });

  it('reads and changes everything, and every response matches the document [B13]', async () => {
    const called = new Set<string>();
    const done: ApiClient['succeed'] = (operationId, call) => {
      called.add(operationId);
      return api.succeed(operationId, call);
    };
    await scheduler.start();
    const dead = await scheduler.dispatch('fails', null, { retries: { max: 1 } });
    await dead.wait();

    const { id } = await done('dispatchJob', {
      body: { taskType: 'works', payload: { a: [1, null] }, delay: '1h', key: 'a/b?c', retries: { max: 2 } },
    });
    assert.equal(id, 'works=a/b?c');
    const again = await done('dispatchJob', { body: { taskType: 'works', key: 'a/b?c' } });
    assert.deepEqual(again, { id, duplicate: true });
    const params = { id };
    assert.deepEqual((await done('showJob', { params })).job.payload, { a: [1, null] });
    assert.equal((await done('explainJob', { params })).state, 'delayed');
    const held = await done('holdJob', { params, body: { reason: 'wait' } });
    assert.deepEqual(held, { id, result: 'changed', state: 'held' });
    assert.equal((await done('showJob', { params })).job.held.reason, 'wait');
    assert.equal((await done('unholdJob', { params })).state, 'delayed');
    const moved = await done('rescheduleJob', { params, body: { at: '2030-01-01' } });
    assert.deepEqual(moved, { id, result: 'changed', state: 'delayed' });
    assert.equal((await done('showJob', { params })).job.nextRunAt, '2030-01-01T00:00:00.000Z');
    assert.equal((await done('cancelJob', { params, body: { reason: 'no' } })).state, 'cancelled');
    assert.equal((await done('retryJob', { params })).state, 'waiting');
    await (await scheduler.dispatch('works', null, { key: 'a/b?c' })).wait();

    assert.equal((await done('listJobs', { query: { state: 'completed', limit: 5 } })).items[0]?.id, id);
    assert.equal((await done('listDead', { query: { taskType: 'fails' } })).items[0]?.id, dead.id);
    const { items: executions } = await done('listExecutions', { query: { jobId: dead.id } });
    assert.equal(executions[0]?.outcome, 'failed');
    assert.equal((await done('showExecution', { params: { id: executions[0]?.id ?? '' } })).jobId, dead.id);

    const dry = await done('retryDead', { body: { all: true, dryRun: true } });
    assert.deepEqual(dry, { matching: { count: 1, atLeast: false }, outcome: null });
    const wet = await done('retryDead', { body: { filter: { taskType: 'fails' }, expected: 1 } });
    assert.equal(wet.outcome.changed, 1);
    await dead.wait();
    for (const n of [1, 2, 3]) await scheduler.dispatch('works', { n }, { queue: 'mail', delay: '1h' });
    const filter = { queue: 'mail' };
    assert.equal((await done('holdJobs', { body: { filter, reason: 'later' } })).outcome.changed, 3);
    assert.equal((await done('unholdJobs', { body: { filter } })).outcome.changed, 3);
    assert.equal((await done('cancelJobs', { body: { filter } })).outcome.changed, 3);
    const retried = await done('retryJobs', { body: { filter: { ...filter, state: 'cancelled' } } });
    assert.equal(retried.outcome.changed, 3);
    for (const n of [1, 2, 3]) await scheduler.dispatch('works', { n }, { queue: 'spam' });
    const empty = { params: { queue: 'spam' } };
    const count = { count: 3, atLeast: false };
    const dryEmpty = await done('emptyQueue', { ...empty, body: { dryRun: true } });
    assert.deepEqual(dryEmpty, { matching: count, outcome: null });
    assert.equal((await api.call('emptyQueue', { ...empty, body: { expected: 2 } })).status, 409);
    const emptied = await done('emptyQueue', { ...empty, body: { expected: 3 } });
    assert.deepEqual([emptied.outcome.changed, emptied.outcome.cancelled], [3, 0]);
    assert.deepEqual(await done('deleteJob', { params }), { id });
    assert.equal((await api.call('showJob', { params })).status, 404);
    const deleted = await done('deleteJobs', { body: { filter: { taskType: 'fails' } } });
    assert.equal(deleted.outcome.changed, 1);

    const schedule = { params: { id: 'a digest' } };
    const added = {
      id: 'a digest',
      taskType: 'works',
      cron: '0 8 * * MON',
      payload: { to: 'x' },
      weekdays: [1],
    };
    assert.deepEqual(await done('addSchedule', { body: added }), { id: 'a digest' });
    const { id: _, ...definition } = added;
    assert.deepEqual(await done('upsertSchedule', { ...schedule, body: definition }), {
      ...{ id: 'a digest', result: 'unchanged' },
    });
    await done('addSchedule', {
      body: { taskType: 'works', fields: { hours: 2, minutes: '*/15' }, isActive: false },
    });
    assert.equal((await done('showSchedule', schedule)).rule.cron, '0 8 * * MON');
    await done('updateSchedule', {
      ...schedule,
      body: { every: '1h', cron: null, weekdays: null, userId: 'u1' },
    });
    const preview = await done('previewSchedule', {
      ...schedule,
      query: { count: 3, from: '2030-01-01T00:00:00Z' },
    });
    assert.equal(preview.nextRuns.length, 3);
    await done('pauseSchedule', { ...schedule, body: { reason: 'holiday' } });
    const { paused } = await done('showSchedule', schedule);
    assert.match(paused.by, /^operate:[0-9a-f]{8}$/);
    await done('resumeSchedule', schedule);
    assert.match((await done('triggerSchedule', schedule)).jobId, /^a digest\+/);
    const now = new Date();
    const body = { from: new Date(now.getTime() - 7_200_000).toISOString(), to: now.toISOString() };
    assert.equal((await done('backfillSchedule', { ...schedule, body })).existing, 0);
    await done('listSkips', { ...schedule, query: { limit: 5 } });
    const first = await done('listSchedules', { query: { limit: 1 } });
    const second = await done('listSchedules', { query: { limit: 200, after: first.next ?? '' } });
    assert.equal(first.items.length + second.items.length, 3);
    assert.equal(second.next, null);
    assert.deepEqual(await done('removeSchedule', schedule), { id: 'a digest' });
    const { differences } = await done('diffSchedules');
    assert.deepEqual(differences, [{ name: 'nightly', state: 'same', changes: [] }]);
    assert.equal((await done('listDefinitions')).items[0]?.name, 'nightly');

    assert.equal((await done('readStatus')).workers.length, 1);
    assert.ok((await done('listQueues')).items.some(({ queue }) => queue === 'mail'));
    assert.equal((await done('listWorkers')).items[0]?.isLive, true);
    const worker = { params: { id: scheduler.workerId } };
    const draining = nextEvent(scheduler, 'worker:drain');
    assert.deepEqual(await done('drainWorker', worker), { id: scheduler.workerId });
    assert.deepEqual(await draining, { state: 'draining' });
    assert.equal((await api.call('isReady')).status, 503);
    const undrained = nextEvent(scheduler, 'worker:drain', ({ state }) => state === 'undrained');
    await done('undrainWorker', worker);
    await undrained;
    assert.ok((await done('runDoctor')).findings.length >= 10);
    const { options } = await done('readConfiguration');
    assert.ok(!('uri' in options));
    assert.deepEqual(await done('prune', { body: { olderThan: '365d' } }), {
      ...{ finished: 0, orphans: 0, expired: 0 },
      matching: null,
    });
    await done('collect');
    const audit = await done('listAudit', { query: { limit: 200 } });
    assert.ok(audit.items.length > 30);
    await done('isAlive');
    await done('isReady');
    await done('readMetrics');
    await done('readDocument');

    const missed = [...api.operations.keys()].filter((operationId) => !called.has(operationId));
    assert.deepEqual(missed, []);
  });

  it('reports what does not exist, what its state forbids and what is impossible', async () => {
    const nothing = { params: { id: 'nothing' } };
    const expectProblem = async (
      status: number,
      code: string,
      ...[operationId, call]: Parameters<ApiClient['call']>
    ) => {
      const { status: got, body, headers } = await api.call(operationId, call);
      assert.deepEqual(
        [got, body.status, body.code],
        [status, status, code],
        `${operationId}: ${body.detail}`,
      );
      assert.equal(body.type, `urn:chronos:problem:${code}`);
      assert.equal(headers.get('x-request-id'), body.requestId);
    };
    for (const operationId of [
      ...['showJob', 'explainJob', 'cancelJob', 'retryJob', 'holdJob', 'unholdJob', 'deleteJob'],
    ])
      await expectProblem(404, 'JOB_NOT_FOUND', operationId, nothing);
    for (const operationId of [
      'showSchedule',
      'removeSchedule',
      'previewSchedule',
      'listSkips',
      'pauseSchedule',
      'resumeSchedule',
      'triggerSchedule',
    ])
      await expectProblem(404, 'SCHEDULE_NOT_FOUND', operationId, nothing);
    await expectProblem(404, 'SCHEDULE_NOT_FOUND', 'updateSchedule', {
      ...nothing,
      body: { cron: '* * * * *' },
    });
    await expectProblem(404, 'SCHEDULE_NOT_FOUND', 'backfillSchedule', {
      ...nothing,
      body: { from: '2026-01-01', to: '2026-01-02' },
    });
    await expectProblem(404, 'EXECUTION_NOT_FOUND', 'showExecution', nothing);

    await expectProblem(404, 'WORKER_NOT_FOUND', 'drainWorker', nothing);
    await database.collections.workers.insertOne(aWorker({ _id: 'gone' }));
    await expectProblem(409, 'WRONG_STATE', 'undrainWorker', { params: { id: 'gone' } });

    const id = await failed();
    await expectProblem(409, 'WRONG_STATE', 'cancelJob', { params: { id } });
    await expectProblem(409, 'WRONG_STATE', 'holdJob', { params: { id } });
    await expectProblem(409, 'WRONG_STATE', 'unholdJob', { params: { id } });
    await api.succeed('retryJob', { params: { id } });
    await expectProblem(409, 'WRONG_STATE', 'retryJob', { params: { id } });
    await expectProblem(409, 'WRONG_STATE', 'deleteJob', { params: { id } });
    await api.succeed('collect');
    await expectProblem(409, 'SCHEDULE_IN_CODE', 'upsertSchedule', {
      params: { id: 'nightly' },
      body: { taskType: 'works', cron: '@daily' },
    });
    await expectProblem(409, 'SCHEDULE_IN_CODE', 'updateSchedule', {
      params: { id: 'nightly' },
      body: { cron: '* * * * *' },
    });
    await api.succeed('addSchedule', { body: { id: 'mine', taskType: 'works', every: 5000 } });
    await expectProblem(409, 'SCHEDULE_EXISTS', 'addSchedule', {
      body: { id: 'mine', taskType: 'works', every: 5000 },
    });

    await expectProblem(422, 'INVALID_SCHEDULE', 'addSchedule', {
      body: { taskType: 'works', cron: 'soon' },
    });
    await expectProblem(422, 'SCHEDULE_NEVER_RUNS', 'addSchedule', {
      body: { taskType: 'works', cron: '0 0 30 2 *' },
    });
    await expectProblem(422, 'INVALID_PAYLOAD', 'dispatchJob', {
      body: { taskType: 'works', payload: { $where: '1' } },
    });
    await expectProblem(422, 'INVALID_ARGUMENT', 'dispatchJob', { body: { taskType: 'no=sign' } });
    await expectProblem(422, 'INVALID_ARGUMENT', 'listJobs', { query: { after: 'bm90aGluZw' } });
  });

  it('changes many jobs only with an explicit filter and at most the expected number', async () => {
    for (const n of [1, 2]) await scheduler.dispatch('works', { n }, { delay: '1h' });
    const none = await api.call('cancelJobs', { body: {} });
    assert.deepEqual([none.status, none.body.code], [422, 'INVALID_ARGUMENT']);
    assert.match(none.body.detail, /all: true/);
    const empty = await api.call('cancelJobs', { body: { filter: {} } });
    assert.equal(empty.status, 422);
    const more = await api.call('cancelJobs', { body: { all: true, expected: 1 } });
    assert.deepEqual([more.status, more.body.code], [409, 'WRONG_STATE']);
    assert.match(more.body.detail, /nothing was changed: expected at most 1 matching jobs, found 2/);
    const dry = await api.succeed('cancelJobs', { body: { all: true, dryRun: true } });
    assert.equal(dry.matching.count, 2);
    assert.equal(await database.collections.jobs.countDocuments({ status: 'SCHEDULED' }), 2);
    const all = await api.succeed('cancelJobs', { body: { all: true, expected: 2, reason: 'gone' } });
    assert.deepEqual(all.outcome, { matched: 2, changed: 2, requested: 0, refused: {}, isAborted: false });
    assert.equal(await database.collections.jobs.countDocuments({ status: 'CANCELLED' }), 2);
  });

  it('counts what it would prune without removing anything or writing an audit entry [B17]', async () => {
    const { jobs, audit } = database.collections;
    const finishedAt = new Date('2020-01-01');
    await jobs.insertMany([1, 2, 3].map(() => aJob({ status: 'COMPLETED', finishedAt })));
    assert.deepEqual(await api.succeed('prune', { body: { olderThan: '365d', dryRun: true } }), {
      ...{ finished: 0, orphans: 0, expired: 0 },
      matching: {
        finished: { count: 3, atLeast: false },
        orphans: { count: 0, atLeast: false },
        expired: { count: 0, atLeast: false },
      },
    });
    assert.equal(await jobs.countDocuments({ status: 'COMPLETED' }), 3);
    assert.equal(await audit.countDocuments(), 0);
    const removed = await api.succeed('prune', { body: { olderThan: '365d' } });
    assert.deepEqual(removed, { finished: 3, orphans: 0, expired: 0, matching: null });
    assert.equal(await jobs.countDocuments({ status: 'COMPLETED' }), 0);
    const entry = await audit.findOne({ action: 'prune' });
    assert.deepEqual(entry?.counts, { finished: 3, orphans: 0, expired: 0 });
  });

  it('pages through lists with the cursor of the previous page', async () => {
    for (let n = 0; n < 5; n++) await scheduler.dispatch('works', { n }, { delay: '1h' });
    const seen: string[] = [];
    for (let after: string | null = ''; after !== null;) {
      const query = { state: 'delayed', limit: 2, ...(after !== '' && { after }) };
      const page: ResponseBody = await api.succeed('listJobs', { query });
      seen.push(...page.items.map(({ id }) => id));
      after = page.next;
    }
    assert.equal(new Set(seen).size, 5);
    assert.equal(seen.length, 5);
    const { status, body } = await api.call('listJobs', { query: { limit: 201 } });
    assert.equal(status, 400);
    assert.match(body.detail, /querystring\/limit must be <= 200/);
  });

  it('shows malformed jobs in the page with the others, and each alone, with what is wrong [F5]', async () => {
    const stored = database.connection.collection('chronos_jobs');
    const documents = Object.entries({ ...DUE, ...EXPIRED }).map(([name, fields]) =>
      Object.fromEntries(
        Object.entries({ ...toStoredJob(aJob({ _id: name })), ...fields }).filter(
          ([, value]) => value !== undefined,
        ),
      ),
    );
    await stored.insertMany(documents, { bypassDocumentValidation: true });
    await scheduler.dispatch('works', null, { delay: '1h' });
    const { items } = await api.succeed('listJobs', { query: { limit: 100 } });
    assert.equal(items.length, documents.length + 1);
    assert.equal(items.filter(({ invalid }) => invalid !== null).length, documents.length);
    for (const { _id } of documents.filter((one) => typeof one['_id'] === 'string')) {
      if (/^a+$/.test(String(_id))) continue;
      const { job } = await api.succeed('showJob', { params: { id: String(_id) } });
      assert.match(job.invalid ?? '', /must|missing/, String(_id));
    }
  });

  it('stops a bulk change when the client disconnects', async () => {
    await scheduler.dispatchMany(
      Array.from({ length: 2000 }, () => ({ taskType: 'works', payload: null, options: { delay: '1h' } })),
    );
    const { jobs, audit } = database.collections;
    const leaving = new AbortController();
    const asked = fetch(`${server.address}/api/v1/bulk/jobs/cancel`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: '{"all":true}',
      signal: leaving.signal,
    });
    await waitUntil('it has begun', async () => (await jobs.countDocuments({ status: 'CANCELLED' })) > 0);
    leaving.abort();
    await assert.rejects(asked);
    await waitUntil(
      'it is written down',
      async () => (await audit.countDocuments({ action: 'cancelJobs' })) === 1,
    );
    const changed = (await audit.findOne({ action: 'cancelJobs' }))?.counts?.['changed'] ?? 0;
    assert.ok(changed > 0 && changed < 2000, String(changed));
    assert.equal(await jobs.countDocuments({ status: 'CANCELLED' }), changed);
  });

  it('writes an audit entry before and after each change [B13]', async () => {
    const { id } = await api.succeed('dispatchJob', { body: { taskType: 'works', delay: '1h' } });
    const held = await api.call('holdJob', { params: { id }, headers: { 'x-request-id': 'my-request.1' } });
    assert.equal(held.headers.get('x-request-id'), 'my-request.1');
    assert.equal(held.headers.get('chronos-audit'), 'written');
    await api.call('holdJob', { params: { id } });
    await api.succeed('cancelJobs', { body: { filter: { taskType: 'works' } } });
    await api.succeed('cancelJobs', { body: { filter: { taskType: 'works' }, dryRun: true } });
    await api.succeed('listJobs');
    const entries = await database.collections.audit.find().sort({ at: 1, _id: 1 }).toArray();
    assert.deepEqual(
      entries.map(({ action, target, counts }) => [action, target, counts]),
      [
        ['dispatchJob:attempted', null, null],
        ['dispatchJob', id, null],
        ['holdJob:attempted', id, null],
        ['holdJob', id, null],
        ['holdJob:attempted', id, null],
        ['holdJob:refused', id, null],
        ['cancelJobs:attempted', null, null],
        ['cancelJobs', null, { matched: 1, changed: 1, requested: 0, refused: 0 }],
      ],
    );
    assert.deepEqual(entries.at(-1)?.filter, { taskType: 'works' });
    assert.deepEqual([entries[2]?.requestId, entries[3]?.requestId], ['my-request.1', 'my-request.1']);
    for (const { who } of entries) assert.match(who, /^operate:[0-9a-f]{8}$/);
    assert.ok(!JSON.stringify(entries).includes(TOKEN));
  });
});
