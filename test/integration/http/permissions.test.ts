import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { type HttpServer, serveHttp, type ServeOptions } from '../../../src/http/server.js';
import type { Scheduler } from '../../../src/index.js';
import { ApiClient, type Call, type Operation } from '../../support/api-client.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const TOKEN = 'a-token-to-operate-with';
const READ_TOKEN = 'a-token-to-read-with';

/** Anything the schemas accept. */
function validCall({ body }: Operation): Call {
  const required = (body?.['required'] ?? []) as string[];
  const values = { taskType: 'works', from: '2026-01-01', to: '2026-01-02' } as Record<string, string>;
  return { params: { id: 'x' }, body: Object.fromEntries(required.map((name) => [name, values[name]])) };
}

describe('permissions over HTTP', () => {
  const database = useSharedDatabase();
  let scheduler: Scheduler;
  let servers: HttpServer[] = [];

  beforeEach(() => {
    scheduler = database.scheduler(withoutRenewalThread);
  });
  afterEach(async () => {
    await Promise.all(servers.map((server) => server.close()));
    servers = [];
  });

  async function serve(options: Partial<ServeOptions> = {}): Promise<HttpServer> {
    const server = await serveHttp(scheduler, { port: 0, ...options });
    servers.push(server);
    return server;
  }

  /** With any Host header, which fetch does not let one set. */
  async function get(server: HttpServer, path: string, host: string): Promise<IncomingMessage> {
    const sent = httpRequest({ port: server.port, host: '127.0.0.1', path, headers: { host } }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    return response;
  }

  it('only health works without a token, and the read token changes nothing [B13]', async () => {
    const { address } = await serve({ token: TOKEN, readToken: READ_TOKEN });
    const api = await ApiClient.open(address, READ_TOKEN);
    for (const operation of api.operations.values()) {
      const { operationId, role } = operation;
      const call = validCall(operation);
      const statusWith = async (token: string): Promise<number> =>
        (await api.call(operationId, { ...call, token })).status;
      if (role === undefined) {
        assert.ok([200, 503].includes(await statusWith('')), operationId);
        continue;
      }
      for (const wrong of ['', 'a-token-to-read-witH', `${TOKEN}x`, TOKEN.slice(1)])
        assert.equal(await statusWith(wrong), 401, operationId);
      const read = await statusWith(READ_TOKEN);
      if (role === 'operate') assert.equal(read, 403, operationId);
      else assert.ok(read === 200 || read === 404, `${operationId}: ${read}`);
    }
    const { jobs, schedules, audit } = database.collections;
    for (const collection of [jobs, schedules, audit]) assert.equal(await collection.countDocuments(), 0);
  });

  it('a token is accepted as Bearer in the Authorization header and nowhere else', async () => {
    const { address } = await serve({ token: TOKEN });
    const statusWith = async (headers: Record<string, string>, query = ''): Promise<number> =>
      (await fetch(`${address}/api/v1/jobs${query}`, { headers })).status;
    assert.equal(await statusWith({ authorization: `Bearer ${TOKEN}` }), 200);
    assert.equal(await statusWith({ authorization: `bearer ${TOKEN}` }), 200);
    assert.equal(await statusWith({ authorization: TOKEN }), 401);
    assert.equal(await statusWith({ authorization: `Basic ${btoa(`:${TOKEN}`)}` }), 401);
    assert.equal(await statusWith({ authorization: `Bearer ${TOKEN}, Bearer x` }), 401);
    assert.equal(await statusWith({ authorization: 'Bearer ' }), 401);
    assert.equal(await statusWith({ 'x-token': TOKEN, cookie: `token=${TOKEN}` }, `?token=${TOKEN}`), 401);
    const { headers } = await fetch(`${address}/metrics`);
    assert.equal(headers.get('www-authenticate'), 'Bearer');
  });

  it('without any token everybody on this machine may read and nobody may change anything', async () => {
    const api = await ApiClient.open((await serve()).address);
    for (const operation of api.operations.values()) {
      if (operation.role !== 'operate') continue;
      const { status, body } = await api.call(operation.operationId, validCall(operation));
      assert.deepEqual([status, body.code], [403, 'CHANGES_OFF']);
      assert.match(body.detail, /HTTP_TOKEN/);
    }
    assert.equal((await api.call('listJobs')).status, 200);
    assert.equal((await api.call('readMetrics')).status, 200);
    assert.equal((await api.call('listJobs', { token: 'whatever-it-may-be' })).status, 401);
  });

  it('with only a read token nothing can be changed', async () => {
    const api = await ApiClient.open((await serve({ readToken: READ_TOKEN })).address, READ_TOKEN);
    assert.equal((await api.call('listJobs')).status, 200);
    assert.equal((await api.call('listJobs', { token: '' })).status, 401);
    assert.equal((await api.call('prune')).body.code, 'CHANGES_OFF');
  });

  it('on loopback only host names of this machine are accepted, which prevents DNS rebinding', async () => {
    const server = await serve({ token: TOKEN });
    for (const host of [
      'localhost',
      `localhost:${server.port}`,
      '127.0.0.1',
      '127.0.0.1:80',
      '[::1]:80',
      'LOCALHOST',
    ])
      assert.equal((await get(server, '/healthz', host)).statusCode, 200, host);
    const foreign = [
      'evil.example',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '10.0.0.1',
      'localhost@evil',
      '[::2]',
      ':80',
      'localhost:80:80',
    ];
    for (const host of foreign) {
      for (const path of ['/healthz', '/metrics', '/api/v1/jobs', '/nowhere'])
        assert.equal((await get(server, path, host)).statusCode, 421, `${host} ${path}`);
    }
  });

  it('on other addresses any host name is accepted, and a token is required', async () => {
    const server = await serve({ host: '0.0.0.0', token: TOKEN });
    assert.equal((await get(server, '/healthz', 'worker.example')).statusCode, 200);
    assert.equal((await get(server, '/api/v1/jobs', 'worker.example')).statusCode, 401);
    await assert.rejects(serveHttp(scheduler, { port: 0, host: '0.0.0.0' }), { code: 'INVALID_OPTIONS' });
  });

  it('a port that is taken is reported, and nothing stays open', async () => {
    const { port } = await serve();
    await assert.rejects(serve({ port }), {
      code: 'WRONG_STATE',
      message: /EADDRINUSE.*HTTP_PORT/,
    });
  });

  it('a page of another site can neither read a response nor make a change', async () => {
    const { address } = await serve({ token: TOKEN });
    const origin = { origin: 'https://evil.example' };
    const preflight = await fetch(`${address}/api/v1/jobs`, {
      method: 'OPTIONS',
      headers: {
        ...origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type',
      },
    });
    assert.equal(preflight.status, 404);
    const read = await fetch(`${address}/healthz`, { headers: origin });
    for (const { headers } of [preflight, read]) {
      assert.deepEqual(
        [...headers.keys()].filter((name) => name.startsWith('access-control')),
        [],
      );
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.equal(headers.get('cache-control'), 'no-store');
      assert.equal(headers.get('content-security-policy'), "default-src 'none'; frame-ancestors 'none'");
      assert.equal(headers.get('referrer-policy'), 'no-referrer');
      assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin');
    }
    for (const type of [
      undefined,
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'application/jsonx',
      'text/plain; application/json',
    ]) {
      const response = await fetch(`${address}/api/v1/prune`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, ...(type && { 'content-type': type }) },
        body: type === undefined ? null : '{}',
      });
      assert.equal(response.status, 415, type);
    }
  });
});
