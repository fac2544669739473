import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TestServer {
  readonly server: Server;
  readonly port: number;
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** Every request, with the body, in the order of arrival. */
  readonly requests: Received[];
}

interface Received {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

const running = new Set<Server>();

/** Starts a server on a free port of 127.0.0.1. */
export async function serve(answer: RequestListener): Promise<TestServer> {
  const requests: Received[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const { method = '', url: path = '', headers } = request;
      const received = { method, path, headers, body: '' };
      requests.push(received);
      for await (const chunk of request) received.body += String(chunk);
      answer(request, response);
    })();
  });
  running.add(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { server, port, url: `http://127.0.0.1:${port}`, requests };
}

export async function closeServers(): Promise<void> {
  for (const server of running) {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }
  running.clear();
}
