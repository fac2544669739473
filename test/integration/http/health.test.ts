import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { serveHttp } from '../../../src/http/server.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { signal } from '../../support/events.js';
import { parseMetrics } from '../../support/metrics-text.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';
import { nextMeasurement } from '../../support/measurements.js';

interface Ready {
  status: number;
  body: { status: string; reasons: string[]; state: string };
}

async function readiness(address: string): Promise<Ready> {
  const response = await fetch(`${address}/readyz`);
  return { status: response.status, body: (await response.json()) as Ready['body'] };
}

async function statusOf(url: string): Promise<number> {
  const response = await fetch(url);
  await response.body?.cancel();
  return response.status;
}

describe('health over HTTP', () => {
  const database = useSharedDatabase();

  it('is ready while the worker runs, otherwise says why, and serves metrics [F7] [B13]', async () => {
    const scheduler = database.scheduler(withoutRenewalThread);
    const server = await serveHttp(scheduler, { port: 0 });
    try {
      const { address } = server;
      assert.equal(await statusOf(`${address}/healthz`), 200);
      const before = await readiness(address);
      assert.deepEqual([before.status, before.body.reasons], [503, ['the worker is Stopped, not Running']]);

      const cycle = nextMeasurement(scheduler, 'round', ({ operation }) => operation !== 'check locks');
      await scheduler.start();
      await cycle;
      const during = await readiness(address);
      assert.deepEqual([during.status, during.body.status, during.body.reasons], [200, 'ready', []]);
      const scraped = await fetch(`${address}/metrics`);
      assert.equal(scraped.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
      const families = parseMetrics(await scraped.text());
      const running = families
        .get('chronos_worker_state')
        ?.samples.find(({ labels }) => labels['state'] === 'Running');
      assert.equal(running?.value, 1);

      const [started, go] = [signal(), signal()];
      scheduler.registerHandler('waits', () => (started.fire(), go.promise));
      await scheduler.dispatch('waits');
      await started.promise;
      const stopped = scheduler.stop();
      const stopping = await readiness(address);
      assert.deepEqual(
        [stopping.status, stopping.body.reasons],
        [503, ['the worker is Stopping, not Running']],
      );
      assert.equal(await statusOf(`${address}/healthz`), 200);
      assert.equal(await statusOf(`${address}/api/v1/jobs`), 503);
      go.fire();
      await stopped;
      const refused = await fetch(`${address}/api/v1/jobs`);
      assert.equal(((await refused.json()) as { code: string }).code, 'WORKER_STOPPING');
      assert.equal(scheduler.load.connection, null, 'nobody opened the connection again');

      await scheduler.start();
      assert.equal(await statusOf(`${address}/api/v1/jobs`), 200);
    } finally {
      await server.close();
    }
  });

  describe('of a worker process', () => {
    let proxy: TcpProxy;

    beforeEach(() => {
      const { hostname, port } = new URL(database.uri);
      proxy = new TcpProxy(hostname, Number(port));
    });
    afterEach(async () => {
      await killWorkers();
      await proxy.cut();
    });

    const throughProxy = (): string => {
      const uri = new URL(database.uri);
      uri.port = String(proxy.port);
      uri.search = '?directConnection=true';
      return uri.href;
    };

    it('follows it from a start without a database through an outage to its stop [B13]', async () => {
      await proxy.reserve();
      const worker = new WorkerProcess('w1', {
        MONGODB_URI: throughProxy(),
        HANDLERS: '',
        HTTP_PORT: '0',
        POLL_INTERVAL: '100',
        LOCK_TIMEOUT: '2s',
      });
      const line = await worker.line(({ msg }) => msg.startsWith('HTTP server listening'));
      const address = String(line['address']);
      await worker.line(({ state }) => state === 'Starting');
      const starting = await readiness(address);
      assert.deepEqual(
        [starting.status, starting.body.reasons],
        [503, ['the worker is Starting, not Running']],
      );
      assert.equal(await statusOf(`${address}/healthz`), 200);
      assert.equal(await statusOf(`${address}/api/v1/status`), 503);

      await proxy.restore();
      await waitUntil('it is ready', async () => (await readiness(address)).status === 200);
      assert.equal(await statusOf(`${address}/api/v1/status`), 200);

      await proxy.cut();
      await waitUntil('it is not', async () => (await readiness(address)).status === 503);
      const { reasons } = (await readiness(address)).body;
      assert.ok(reasons.includes('MongoDB cannot be reached, or has no primary'), reasons.join());
      assert.equal(await statusOf(`${address}/healthz`), 200);
      assert.equal(await statusOf(`${address}/metrics`), 200);

      await proxy.restore();
      await waitUntil('it is ready again', async () => (await readiness(address)).status === 200);
      worker.signal('SIGTERM');
      assert.deepEqual(await worker.exited, { code: 0, signal: null });
      assert.ok(!worker.stderr.includes('keeps the process alive'), worker.stderr);
    });

    it('without a database makes the API report that and change nothing it cannot audit [B13]', async () => {
      await proxy.restore();
      const scheduler = database.scheduler({ ...withoutRenewalThread, uri: throughProxy() });
      const told: string[] = [];
      const tell = (_: object, message: string): unknown => told.push(message);
      const logger = { debug: tell, info: tell, warn: tell, error: tell };
      const server = await serveHttp(scheduler, { port: 0, token: 'a-token-to-operate-with', logger });
      try {
        await scheduler.start();
        await proxy.cut();
        const headers = {
          authorization: 'Bearer a-token-to-operate-with',
          'content-type': 'application/json',
        };
        const codeOf = async (path: string, body: string | null): Promise<unknown> => {
          const method = body === null ? 'GET' : 'POST';
          const response = await fetch(`${server.address}/api/v1${path}`, { method, headers, body });
          assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '5']);
          return ((await response.json()) as { code: string }).code;
        };
        assert.deepEqual(
          await Promise.all([
            codeOf('/jobs', null),
            codeOf('/status', null),
            codeOf('/jobs', '{"taskType":"x"}'),
          ]),
          ['MONGODB_UNREACHABLE', 'MONGODB_UNREACHABLE', 'AUDIT_UNWRITABLE'],
        );
        assert.deepEqual(told, ['POST /api/v1/jobs failed']);
        assert.equal(await database.collections.jobs.countDocuments(), 0);
      } finally {
        await proxy.restore();
        await server.close();
      }
    });

    it('is not ready at once after SIGTERM, alive until the jobs are done, then closes open connections [B13]', async () => {
      const worker = await WorkerProcess.start('w1', { MONGODB_URI: database.uri, HTTP_PORT: '0' });
      const { address, port } = await worker.line(({ msg }) => msg.startsWith('HTTP server listening'));
      await waitUntil('it is ready', async () => (await readiness(String(address))).status === 200);
      const idle = connect(Number(port), '127.0.0.1');
      await once(idle, 'connect');
      const halfSent = connect(Number(port), '127.0.0.1');
      halfSent.write('POST /api/v1/prune HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n');
      for (const socket of [idle, halfSent]) socket.on('error', () => undefined);

      const { id } = await database.scheduler(withoutRenewalThread).dispatch('slow', { ms: 1500 });
      await worker.line(({ msg, jobId }) => msg === 'slow started' && jobId === id);
      worker.signal('SIGTERM');
      await worker.line(({ state }) => state === 'Stopping');
      const stopping = await readiness(String(address));
      assert.deepEqual(
        [stopping.status, stopping.body.reasons],
        [503, ['the worker is Stopping, not Running']],
      );
      assert.equal(await statusOf(`${String(address)}/healthz`), 200);
      assert.deepEqual(await worker.exited, { code: 0, signal: null });
      assert.ok(!worker.stderr.includes('keeps the process alive'), worker.stderr);
      assert.equal((await database.collections.jobs.findOne({ _id: id }))?.status, 'COMPLETED');
    });

    it('exits with 2 when it would be open to everybody, and with 1 when the port is taken', async () => {
      const open = new WorkerProcess('w1', {
        MONGODB_URI: database.uri,
        HTTP_PORT: '0',
        HTTP_HOST: '0.0.0.0',
      });
      assert.equal((await open.exited).code, 2);
      assert.match(open.stderr, /HTTP_HOST is '0\.0\.0\.0', which other machines can reach: set HTTP_TOKEN/);
      await proxy.restore();
      const taken = new WorkerProcess('w2', {
        MONGODB_URI: database.uri,
        HANDLERS: '',
        HTTP_PORT: String(proxy.port),
      });
      assert.equal((await taken.exited).code, 1);
      assert.match(taken.stderr, /cannot listen on 127\.0\.0\.1.*EADDRINUSE/);
    });
  });
});
