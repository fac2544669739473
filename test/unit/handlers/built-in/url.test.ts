import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { ChronosError } from '../../../../src/domain/errors.js';
import { urlHandler, type UrlResult } from '../../../../src/handlers/built-in/url.js';
import type { JobContext } from '../../../../src/domain/job/handler.js';
import { signal } from '../../../support/events.js';
import { aJobContext } from '../../../support/handlers/job-context.js';
import { closeServers, serve, type TestServer } from '../../../support/handlers/http-server.js';

const handler = urlHandler({ hosts: ['127.0.0.1'] });
const run = async (payload: unknown, job: JobContext = aJobContext()): Promise<UrlResult> =>
  (await handler(payload, job)) as UrlResult;
const failureOf = async (payload: unknown): Promise<ChronosError> => {
  const error = await run(payload).catch((thrown: unknown) => thrown);
  assert.ok(error instanceof ChronosError);
  return error;
};

const greet: RequestListener = (_, response) => response.setHeader('content-type', 'text/plain').end('hello');

describe('urlHandler [D2]', () => {
  afterEach(closeServers);

  it('returns the response', async () => {
    const { url } = await serve(greet);
    assert.deepEqual(await run(url), {
      status: 200,
      headers: { 'content-type': 'text/plain' },
      body: 'hello',
      cut: false,
      redirects: 0,
    });
  });

  it('sends its user agent, and the id and fence of the job', async () => {
    const { url, requests } = await serve(greet);
    await run(`${url}/path?query=1`, aJobContext({ id: 'report@1', fence: 12 }));
    const [{ method, path, headers }] = requests as [TestServer['requests'][0]];
    assert.deepEqual([method, path], ['GET', '/path?query=1']);
    assert.equal(headers['idempotency-key'], 'report@1');
    assert.equal(headers['x-chronos-fence'], '12');
    assert.equal(headers['user-agent'], 'chronos');
    assert.equal(headers.connection, 'close');
  });

  it('sends different ids for any two jobs', async () => {
    const { url, requests } = await serve(greet);
    const ids = ['grüße 🎉\r\nx: y', 'a b', 'a%20b', 'a+b'];
    for (const id of ids) await run(url, aJobContext({ id }));
    const keys = requests.map(({ headers }) => String(headers['idempotency-key']));
    assert.deepEqual(keys.slice(1), ['a%20b', 'a%2520b', 'a+b']);
    assert.deepEqual(keys.map(decodeURIComponent), ids);
  });

  it('sends the request of the payload', async () => {
    const { url, requests } = await serve(greet);
    await run({ url, method: 'PUT', body: { a: 'ü' }, headers: { 'User-Agent': 'me', 'X-Test': '1' } });
    await run({ url: url.replace('://', '://me:p%40ss@'), method: 'POST', body: 'text' });
    await run({ url, method: 'DELETE' });
    const [put, post, remove] = requests;
    assert.equal(put?.body, '{"a":"ü"}');
    assert.equal(put.headers['content-type'], 'application/json');
    assert.equal(put.headers['content-length'], '10');
    assert.equal(put.headers['user-agent'], 'me');
    assert.equal(put.headers['x-test'], '1');
    assert.equal(post?.body, 'text');
    assert.equal(post.headers.authorization, `Basic ${Buffer.from('me:p@ss').toString('base64')}`);
    assert.deepEqual([remove?.method, remove?.body], ['DELETE', '']);
  });

  it('reads no body after HEAD', async () => {
    const { url } = await serve((_, response) => response.setHeader('content-length', '100').end());
    assert.deepEqual(await run({ url, method: 'HEAD' }), {
      status: 200,
      headers: {},
      body: '',
      cut: false,
      redirects: 0,
    });
  });

  it('rejects malformed payloads', () =>
    assert.rejects(run({ url: 'ftp://a/' }), { code: 'INVALID_PAYLOAD' }));

  describe('depending on the status', () => {
    const serveStatus = (status: number, body = ''): Promise<TestServer> =>
      serve((_, response) => response.writeHead(status).end(body));

    it('succeeds with 200 to 299', async () => {
      for (const status of [200, 204, 299]) {
        const { url } = await serveStatus(status);
        assert.equal((await run(url)).status, status);
      }
    });

    it('fails with any other and shows the start of the body without secrets', async () => {
      const { url } = await serveStatus(503, `try later at http://me:hush@host/ ${'x'.repeat(2000)}`);
      const { code, message } = await failureOf(`${url.replace('://', '://me:hush@')}/path?token=hush`);
      assert.equal(code, 'URL_FAILED');
      assert.ok(
        message.startsWith(`GET ${url}/path returned 503, expected 200 to 299; the body starts with: try`),
      );
      assert.ok(message.length < 700);
      assert.ok(!message.includes('hush'));
      assert.match(
        (await failureOf((await serveStatus(404)).url)).message,
        /returned 404,.*; the body is empty$/,
      );
    });

    it('succeeds only with a status that the payload expects', async () => {
      const gone = await serveStatus(410, 'gone');
      assert.equal((await run({ url: gone.url, expect: [200, 410] })).body, 'gone');
      const { url } = await serveStatus(200);
      assert.match(
        (await failureOf({ url, expect: [201, 202] })).message,
        /returned 200, expected 201, 202;/,
      );
    });
  });

  describe('with a long body', () => {
    it('keeps the first part', async () => {
      const { url } = await serve((_, response) => response.end(`first ${'x'.repeat(300_000)}`));
      const { body, cut } = await run(url);
      assert.deepEqual([body.length, cut], [64 * 1024, true]);
      assert.ok(body.startsWith('first x'));
    });

    it('disconnects from a server that never stops sending', async () => {
      const disconnected = signal();
      const { url } = await serve((_, response) => {
        const chunk = 'x'.repeat(64 * 1024);
        const write = (): void => {
          while (!response.destroyed && response.write(chunk));
        };
        response.on('drain', write).on('close', disconnected.fire);
        write();
      });
      const { body, cut } = await run(url);
      assert.deepEqual([body.length, cut], [64 * 1024, true]);
      await disconnected.promise;
    });
  });

  describe('when redirected', () => {
    /** `/n` redirects to `/n-1`, `/0` is the end. */
    const chain = (status = 302): Promise<TestServer> =>
      serve((request, response) => {
        const left = Number(request.url?.slice(1));
        if (left === 0) response.end('there');
        else response.writeHead(status, { location: `/${left - 1}` }).end('moved');
      });

    it('follows up to three times', async () => {
      const { url } = await chain();
      for (const redirects of [1, 2, 3]) {
        const result = await run(`${url}/${redirects}`);
        assert.deepEqual([result.status, result.body, result.redirects], [200, 'there', redirects]);
      }
    });

    it('fails after three redirects', async () => {
      const { url, requests } = await chain();
      const { code, message } = await failureOf(`${url}/4`);
      assert.equal(code, 'URL_FAILED');
      assert.equal(message, `GET ${url}/1 redirects again, but at most 3 redirects are followed`);
      assert.deepEqual(
        requests.map(({ path }) => path),
        ['/4', '/3', '/2', '/1'],
      );
    });

    it('fails for a redirect cycle', async () => {
      const { url } = await serve((_, response) => response.writeHead(301, { location: '/' }).end());
      assert.match((await failureOf(url)).message, /at most 3 redirects/);
    });

    it('continues with GET after 303 and with the same request after 307', async () => {
      for (const [status, method, body] of [
        [303, 'GET', ''],
        [307, 'POST', '{"a":1}'],
      ] as const) {
        const { url, requests } = await chain(status);
        await run({ url: `${url}/2`, method: 'POST', body: { a: 1 } });
        assert.deepEqual(
          requests.map((request) => [request.method, request.body]),
          [
            ['POST', '{"a":1}'],
            [method, body],
            [method, body],
          ],
        );
        assert.equal(requests[2]?.headers['content-type'], method === 'GET' ? undefined : 'application/json');
      }
    });

    it('keeps all headers for the same origin, only harmless ones for another, and sends the job id to both', async () => {
      const other = await serve(greet);
      const { url, requests } = await serve((request, response) => {
        const location = request.url === '/start' ? '/middle' : `${other.url}/end`;
        response.writeHead(307, { location }).end();
      });
      await run({
        url: `${url.replace('://', '://me:hush@')}/start`,
        headers: { cookie: 'a=b', 'X-API-Key': 'x', 'x-test': '1', accept: 'text/plain' },
      });
      const sent = [...requests, ...other.requests].map(({ headers }) => [
        headers.authorization !== undefined,
        headers.cookie,
        headers['x-api-key'],
        headers['x-test'],
        headers.accept,
        headers['idempotency-key'],
        headers['x-chronos-fence'],
      ]);
      assert.deepEqual(sent, [
        [true, 'a=b', 'x', '1', 'text/plain', 'job-1', '7'],
        [true, 'a=b', 'x', '1', 'text/plain', 'job-1', '7'],
        [false, undefined, undefined, undefined, 'text/plain', 'job-1', '7'],
      ]);
    });

    it('does not follow a redirect that the payload expects or that has no location', async () => {
      const { url } = await chain();
      assert.equal((await run({ url: `${url}/2`, expect: [302] })).body, 'moved');
      const withoutLocation = await serve((_, response) => response.writeHead(302).end());
      assert.match((await failureOf(withoutLocation.url)).message, /returned 302/);
    });

    it('checks every host again', async () => {
      for (const location of [
        'http://169.254.169.254/latest/meta-data/',
        'http://127.0.0.2/',
        'http://[::1]/',
        'http://0x7f.0.0.2/',
      ]) {
        const { url } = await serve((_, response) => response.writeHead(302, { location }).end());
        assert.equal((await failureOf(url)).code, 'URL_REFUSED', location);
      }
      const { url } = await serve((_, response) =>
        response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
      );
      assert.equal((await failureOf(url)).code, 'URL_REFUSED');
    });
  });

  describe('without a response', () => {
    it('fails with the cause', async () => {
      const { url, server } = await serve(greet);
      server.close();
      await once(server, 'close');
      const error = await failureOf(`${url.replace('://', '://me:hush@')}/?hush`);
      assert.equal(error.code, 'URL_FAILED');
      assert.match(error.message, /^GET http:\/\/127\.0\.0\.1:\d+\/ did not respond: .*ECONNREFUSED/);
      assert.ok(error.cause instanceof Error);
    });

    it('fails when the host does not exist', async () => {
      const error = await failureOf('http://no-such-host.invalid/');
      assert.equal(error.code, 'URL_FAILED');
      assert.match(error.message, /did not respond: getaddrinfo/);
    });

    it('fails when the server disconnects early', async () => {
      const cutOff = await serve((_, response) => {
        response.setHeader('content-length', '100').write('half');
        response.socket?.end();
      });
      assert.match((await failureOf(cutOff.url)).message, /did not respond: aborted/);
      const silent = await serve((request) => request.socket.destroy());
      assert.match((await failureOf(silent.url)).message, /did not respond: socket hang up/);
    });

    it('fails when the server does not speak HTTP', async () => {
      const { url } = await serve(greet);
      assert.match((await failureOf(url.replace('http:', 'https:'))).message, /^GET https:.*did not respond/);
      for (const reply of [
        '220 mail ready\r\n',
        'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      ]) {
        const server = createTcpServer((socket) => socket.on('error', () => undefined).end(reply));
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
        const { port } = server.address() as AddressInfo;
        assert.equal((await failureOf(`http://127.0.0.1:${port}/`)).code, 'URL_FAILED');
        server.close();
      }
    });
  });

  describe('when aborted', () => {
    const reason = new Error('cancelled');

    it('sends nothing for a job whose signal is already aborted', async () => {
      const { url, requests } = await serve(greet);
      await assert.rejects(run(url, aJobContext({ signal: AbortSignal.abort(reason) })), reason);
      assert.deepEqual(requests, []);
    });

    it('disconnects while it waits for the response, and in the middle of the body', async () => {
      for (const firstChunk of [undefined, 'half'] as const) {
        const control = new AbortController();
        const [requested, disconnected] = [signal(), signal()];
        const { url } = await serve((_, response) => {
          response.on('close', disconnected.fire);
          if (firstChunk !== undefined) response.write(firstChunk);
          requested.fire();
        });
        const running = run(url, aJobContext({ signal: control.signal }));
        await requested.promise;
        control.abort(reason);
        await assert.rejects(running, reason);
        await disconnected.promise;
      }
    });
  });
});
