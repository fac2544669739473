import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { type HttpServer, serveHttp } from '../../../src/http/server.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const TOKEN = 'a-token-to-operate-with';
/** More than the server keeps open. */
const MANY = 300;
const HOST = 'Host: localhost\r\n';
const AUTHORIZED = `${HOST}Authorization: Bearer ${TOKEN}\r\n`;

describe('connections over HTTP', () => {
  const database = useSharedDatabase();
  let server: HttpServer;
  let sockets: Socket[] = [];

  beforeEach(async () => {
    server = await serveHttp(database.scheduler(withoutRenewalThread), { port: 0, token: TOKEN });
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    sockets = [];
    await server.close();
  });

  /** A client that keeps its side open when the server closes the connection. */
  async function open(): Promise<Socket> {
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  }

  /** Sends a request and returns the first part of the response, which contains the headers. */
  async function exchange(socket: Socket, request: string): Promise<string> {
    socket.write(request);
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    return chunk.toString();
  }

  async function openMany(use: (socket: Socket) => Promise<unknown>): Promise<void> {
    for (let opened = 0; opened < MANY; opened += 50)
      await Promise.all(Array.from({ length: 50 }, async () => use(await open())));
  }

  const clients: Record<string, (socket: Socket) => Promise<unknown>> = {
    'that send nothing': async () => undefined,
    'that send headers without an end': async (socket) => socket.write(`GET /healthz HTTP/1.1\r\n${HOST}X: `),
    'that send no body': async (socket) =>
      socket.write(`POST /api/v1/prune HTTP/1.1\r\n${HOST}Content-Length: 10\r\n\r\n`),
    'that stay after a rejection': (socket) => exchange(socket, `GET /api/v1/jobs HTTP/1.1\r\n${HOST}\r\n`),
    'that stay after a health check': (socket) => exchange(socket, `GET /healthz HTTP/1.1\r\n${HOST}\r\n`),
    'that stay after invalid HTTP': (socket) => exchange(socket, 'nonsense\r\n\r\n'),
    'that have a token and are idle': (socket) =>
      exchange(socket, `GET /metrics HTTP/1.1\r\n${AUTHORIZED}\r\n`),
  };
  for (const [which, use] of Object.entries(clients)) {
    it(`hundreds of clients ${which} do not keep out health checks [B13]`, async () => {
      await openMany(use);
      const response = await fetch(`${server.address}/healthz`, { signal: AbortSignal.timeout(5000) });
      assert.equal(response.status, 200);
      await response.body?.cancel();
    });
  }

  it('of clients with a token stay open when other clients fill the server', async () => {
    const operator = await open();
    const request = `GET /api/v1/configuration HTTP/1.1\r\n${AUTHORIZED}\r\n`;
    assert.match(await exchange(operator, request), /^HTTP\/1\.1 200 /);
    await openMany(async () => undefined);
    assert.match(await exchange(operator, request), /^HTTP\/1\.1 200 /);
  });

  it('that close in the middle of many requests free the places of all of them', async () => {
    const request = `GET /api/v1/jobs?limit=1 HTTP/1.1\r\n${AUTHORIZED}`;
    for (let closed = 0; closed < 3; closed++) {
      const leaving = await open();
      leaving.write(`${request}\r\n`.repeat(100));
      // The server reads what arrived first before it responds to this.
      await exchange(await open(), `GET /healthz HTTP/1.1\r\n${HOST}\r\n`);
      leaving.resetAndDestroy();
    }
    const socket = await open();
    socket.write(`${request}\r\n${request}Connection: close\r\n\r\n`);
    assert.equal((await text(socket)).match(/HTTP\/1\.1 200 /g)?.length, 2);
  });

  it('are closed after a rejection, and stay open after an error of a client with a token', async () => {
    const rejected = [
      `GET /api/v1/jobs HTTP/1.1\r\n${HOST}\r\n`,
      `GET /api/v1/jobs HTTP/1.1\r\n${HOST}Authorization: Bearer wrong\r\n\r\n`,
      `GET /nowhere HTTP/1.1\r\n${HOST}\r\n`,
      `GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n`,
      `GET /api/v1/jobs/%zz HTTP/1.1\r\n${HOST}\r\n`,
      `POST /api/v1/jobs HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\n{}\n`,
    ];
    for (const request of rejected) {
      const response = await exchange(await open(), request);
      assert.match(response, /^HTTP\/1\.1 4\d\d /, request);
      assert.match(response, /^connection: close\r$/im, request);
    }
    const known = await open();
    const wrong = await exchange(known, `GET /api/v1/jobs?limit=x HTTP/1.1\r\n${AUTHORIZED}\r\n`);
    assert.match(wrong, /^HTTP\/1\.1 400 /);
    assert.match(wrong, /^connection: keep-alive\r$/im);
  });

  it('deliver a rejection although the client is still sending a large body', async () => {
    const body = JSON.stringify({ taskType: 'x', payload: 'y'.repeat(900_000) });
    const headers = { 'content-type': 'application/json' };
    for (let sent = 0; sent < 10; sent++) {
      const response = await fetch(`${server.address}/api/v1/jobs`, { method: 'POST', headers, body });
      assert.equal(response.status, 401);
      await response.body?.cancel();
    }
  });

  it('are closed within seconds when no complete request arrives', async () => {
    const silent = await open();
    const slow = await open();
    slow.write(`GET /healthz HTTP/1.1\r\n${HOST}X: `);
    const drip = setInterval(() => slow.write('x'), 200);
    const started = performance.now();
    try {
      const responses = await Promise.all([text(silent), text(slow)]);
      for (const response of responses) assert.match(response, /^HTTP\/1\.1 408 /);
    } finally {
      clearInterval(drip);
    }
    assert.ok(performance.now() - started < 15_000);
  });

  it('with two Host headers get a 400', async () => {
    for (const second of ['Host: localhost', 'hOsT: evil.example']) {
      const response = await exchange(await open(), `GET /healthz HTTP/1.1\r\n${HOST}${second}\r\n\r\n`);
      assert.match(response, /^HTTP\/1\.1 400 /);
      assert.match(response, /host header/);
    }
  });
});
