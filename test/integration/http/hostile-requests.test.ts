import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { type HttpServer, serveHttp } from '../../../src/http/server.js';
import type { Logger, Scheduler } from '../../../src/index.js';
import { ApiClient, type Call, type Operation } from '../../support/api-client.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const TOKEN = 'a-token-to-operate-with';
const OPERATORS = [{ $ne: null }, { $gt: '' }, { $where: 'sleep(1000)' }, { $regex: '.*' }, [{ $ne: 1 }]];
/** Text that means something to a database, a file system, a terminal, a prototype or a log. */
const TEXTS = [
  ...['{"$ne":null}', '[$ne]', '$where', "';sleep(1000)//", '../../../etc/passwd', '..%2f..%2fetc', '%00'],
  ...['__proto__', 'constructor', 'toString', '\u001b[2J', 'a\r\nset-cookie: x=1', '\u202e', '*', '.', '\0'],
  'x'.repeat(5000),
];

describe('hostile requests', () => {
  const errors: unknown[] = [];
  let scheduler: Scheduler;
  let server: HttpServer;
  let api: ApiClient;

  /** Whatever came: nothing broke, and nothing that was there was touched. Before the database is emptied. */
  afterEach(async () => {
    await server.close();
    assert.deepEqual(errors, []);
    const job = await database.collections.jobs.findOne({ _id: 'works=bystander' });
    assert.deepEqual([job?.status, job?.held, job?.fence], ['SCHEDULED', null, 0]);
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });
  const database = useSharedDatabase();

  beforeEach(async () => {
    errors.length = 0;
    const quiet = (): void => undefined;
    const logger: Logger = { debug: quiet, info: quiet, warn: quiet, error: (fields) => errors.push(fields) };
    scheduler = database.scheduler(withoutRenewalThread);
    server = await serveHttp(scheduler, { port: 0, token: TOKEN, logger });
    api = await ApiClient.open(server.address, TOKEN);
    await scheduler.dispatch('works', { a: 1 }, { delay: '1h', key: 'bystander' });
  });

  const values: Record<string, unknown> = { taskType: 'other', from: '2026-01-01', to: '2026-01-02' };

  function required({ body }: Operation): Record<string, unknown> {
    return Object.fromEntries(((body?.['required'] ?? []) as string[]).map((name) => [name, values[name]]));
  }

  async function post(path: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${server.address}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
      body,
    });
  }

  async function refused(operationId: string, call: Call, ...statuses: number[]): Promise<void> {
    const { status, body } = await api.call(operationId, call);
    assert.ok(statuses.includes(status), `${operationId} ${JSON.stringify(call).slice(0, 200)}: ${status}`);
    assert.equal(typeof body.detail, 'string');
    assert.ok(body.detail.length <= 2000);
    assert.ok(!JSON.stringify(body).includes('node_modules'), 'no stack');
  }

  it('with operators, lists and unknown names in query parameters are rejected', async () => {
    for (const { path, method, parameters, operationId } of api.operations.values()) {
      if (method !== 'get' || !path.startsWith('/api/v1/') || path.endsWith('openapi.json')) continue;
      const url = `${server.address}${path.replace(/\{\w+\}/, 'x')}`;
      const names = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
      for (const query of [
        ...names.flatMap((name) => [`${name}[$ne]=1`, `${name}[]=1`, `${name}=a&${name}=b`, `${name}.$gt=1`]),
        ...['$where=1', '__proto__[polluted]=1', 'constructor.prototype.polluted=1', 'unknown=1'],
      ]) {
        const response = await fetch(`${url}?${query}`, { headers: { authorization: `Bearer ${TOKEN}` } });
        assert.equal(response.status, 400, `${operationId} ${query}`);
        await response.body?.cancel();
      }
    }
  });

  it('with strange text in any parameter find nothing and break nothing', async () => {
    for (const { operationId, method, parameters } of api.operations.values()) {
      if (method !== 'get') continue;
      for (const { name, in: place } of parameters) {
        for (const value of TEXTS) {
          const call: Call =
            place === 'path' ? { params: { id: value } } : { params: { id: 'x' }, query: { [name]: value } };
          // A path of dots is another path before it leaves the client.
          if (place === 'path' && value === '.') continue;
          const { status, body } = await api.call(operationId, call);
          assert.ok([200, 400, 404, 422].includes(status), `${operationId} ${name} ${status}`);
          if (status === 200)
            assert.ok(!JSON.stringify(body).includes('bystander'), `${operationId} ${name}=${value}`);
        }
      }
    }
  });

  it('with a wrong type in any field of a body are rejected, and no operator reaches a query', async () => {
    for (const operation of api.operations.values()) {
      const { operationId, body } = operation;
      if (body === undefined) continue;
      const good = required(operation);
      const properties = Object.keys(body['properties'] ?? {});
      for (const name of properties) {
        for (const value of OPERATORS)
          await refused(
            operationId,
            { params: { id: 'x' }, body: { ...good, [name]: value } },
            400,
            404,
            422,
          );
        if (name === 'payload') continue;
        const wrong =
          typeof good[name] === 'string' || name === 'id' || name === 'reason' ? [1, true, null] : [{}];
        if (['filter', 'retries', 'retention', 'misfire', 'fields'].includes(name))
          wrong.splice(0, 1, 'text');
        for (const value of wrong) {
          if (operationId === 'updateSchedule' && value === null) continue;
          await refused(operationId, { params: { id: 'x' }, body: { ...good, [name]: value } }, 400);
        }
      }
      for (const extra of ['$where', 'unknown', 'prototype', '_id'])
        await refused(operationId, { params: { id: 'x' }, body: { ...good, [extra]: 'x' } }, 400);
      for (const whole of [[], [null], 'text', 1])
        await refused(operationId, { params: { id: 'x' }, body: whole }, 400);
    }
    const filter = { taskType: { $ne: 'x' } };
    await refused('cancelJobs', { body: { filter } }, 400);
    await refused('cancelJobs', { body: { filter: { $or: [{}] } } }, 400);
    await refused('cancelJobs', { body: { all: 'true' } }, 400);
    await refused('holdJobs', { body: { filter: { taskType: 'x' }, expected: '5' } }, 400);
    await refused('dispatchJob', { body: { taskType: 'x', priority: '1' } }, 400);
    assert.equal(await database.collections.jobs.countDocuments(), 1);
  });

  it('cannot change prototypes', async () => {
    for (const body of [
      '{"taskType":"x","__proto__":{"polluted":true}}',
      '{"taskType":"x","payload":{"__proto__":{"polluted":true}}}',
      '{"taskType":"x","payload":{"constructor":{"prototype":{"polluted":true}}}}',
      '{"taskType":"x","\\u005f_proto__":{"polluted":true}}',
    ])
      assert.equal((await post('/jobs', body)).status, 400, body);
    assert.equal(await database.collections.jobs.countDocuments(), 1);
  });

  it('with bodies that are too large, too deep or not JSON are rejected', async () => {
    assert.equal(
      (await post('/jobs', JSON.stringify({ taskType: 'x', payload: 'y'.repeat(1.1e6) }))).status,
      413,
    );
    const large = await post('/jobs', JSON.stringify({ taskType: 'x', payload: 'y'.repeat(400_000) }));
    assert.deepEqual(
      [large.status, ((await large.json()) as { code: string }).code],
      [422, 'INVALID_PAYLOAD'],
    );
    const deep = `{"taskType":"x","payload":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    assert.equal((await post('/jobs', deep)).status, 422);
    for (const body of ['{', 'null', '"x"', 'NaN', '{"taskType":"x"}x', '\u0000', "{taskType:'x'}"])
      assert.equal((await post('/jobs', body)).status, 400, body);
    const chunked = { 'content-encoding': 'gzip' };
    assert.ok((await post('/jobs', 'not gzip', chunked)).status >= 400);
  });

  it('have their request id accepted only when it is well-formed', async () => {
    const idFor = async (given: string): Promise<string | null> =>
      (await fetch(`${server.address}/healthz`, { headers: { 'x-request-id': given } })).headers.get(
        'x-request-id',
      );
    assert.equal(await idFor('abc-1.2_3'), 'abc-1.2_3');
    for (const given of ['', 'has space', 'x'.repeat(65), '{"$ne":1}', '<script>', 'é'])
      assert.match((await idFor(given)) ?? '', /^[0-9a-f-]{36}$/, given);
  });

  describe('on the wire', () => {
    /** Sends these bytes, and reads until the server closes. */
    async function raw(request: string): Promise<string> {
      const socket = connect(server.port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write(request);
      return text(socket);
    }
    const head = `Host: localhost\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
    const close = 'Connection: close\r\n';

    it('with two lengths, or a length and chunks, are rejected', async () => {
      const smuggled = 'GET /api/v1/audit HTTP/1.1\r\nHost: localhost\r\n\r\n';
      const both = `POST /api/v1/prune HTTP/1.1\r\n${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`;
      const two = `POST /api/v1/prune HTTP/1.1\r\n${head}Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}${smuggled}`;
      const odd = `POST /api/v1/prune HTTP/1.1\r\n${head}Transfer-Encoding: xchunked\r\n\r\n{}${smuggled}`;
      const folded = `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b: c\nd: e\r\n\r\n`;
      for (const request of [both, two, odd, folded, 'nonsense\r\n\r\n', 'GET /healthz HTTP/1.1\r\n\r\n']) {
        const answer = await raw(request);
        assert.match(answer, /^HTTP\/1\.1 400 /, request);
        assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1, 'what follows is not taken for a request');
      }
      assert.equal(await database.collections.audit.countDocuments(), 0);
    });

    it('with endless headers are rejected', async () => {
      assert.match(
        await raw(`GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`),
        /^HTTP\/1\.1 431 /,
      );
    });

    it('with paths outside of their route or undecodable paths are rejected', async () => {
      const statusOf = async (path: string): Promise<string> =>
        (await raw(`GET ${path} HTTP/1.1\r\n${head}${close}\r\n`)).slice(9, 12);
      assert.equal(await statusOf('/api/v1/../../etc/passwd'), '404');
      assert.equal(await statusOf('/api/v1/jobs/../audit'), '404');
      assert.equal(await statusOf('/api/v1/jobs/%2e%2e%2f%2e%2e%2fetc%2fpasswd'), '404');
      assert.equal(await statusOf('//api/v1/jobs'), '404');
      assert.equal(await statusOf('/api/v1/jobs/%zz'), '400');
      assert.equal(await statusOf('/api/v1/jobs/%ff'), '400');
      assert.equal(await statusOf('/api/v1/jobs/%00'), '400');
      assert.equal(await statusOf('http://evil.example/api/v1/jobs'), '400');
      assert.equal(await statusOf(`/api/v1/jobs/${'x'.repeat(702)}`), '400');
      assert.equal(await statusOf(`/api/v1/jobs/${'x'.repeat(9000)}`), '414');
    });
  });
});
