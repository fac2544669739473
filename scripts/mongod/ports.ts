import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

const HOST = '127.0.0.1';

export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(false);
    });
    server.listen(port, HOST, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}

/** Any port that is free at the moment. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, HOST);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Where no system assigns ports to outgoing connections: Linux starts at 32768. */
const [LOWEST_STABLE, STABLE_PORTS] = [20_000, 12_000];

/**
 * A free port that stays free while nothing listens on it: for a server that is started again on the same port. Otherwise
 * another process could get it for an outgoing connection in the meantime.
 */
export async function freeStablePort(): Promise<number> {
  for (;;) {
    const port = LOWEST_STABLE + randomInt(STABLE_PORTS);
    if (await isFree(port)) return port;
  }
}

export async function firstFreePort(from: number): Promise<number> {
  let port = from;
  while (!(await isFree(port))) port += 1;
  return port;
}

export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, HOST);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });
}
