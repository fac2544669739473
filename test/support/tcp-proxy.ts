import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freeStablePort } from '@chronos/mongod';

/** A TCP proxy. After `cut`, connections are broken and new ones fail, until `restore`. */
export class TcpProxy {
  readonly #target: { host: string; port: number };
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  port = 0;

  constructor(host: string, port: number) {
    this.#target = { host, port };
  }

  /** Chooses a port on which connections fail until `restore`. */
  async reserve(): Promise<void> {
    await this.restore();
    await this.cut();
  }

  async restore(): Promise<void> {
    this.port ||= await freeStablePort();
    this.#server = createServer((incoming) => {
      const outgoing = connect(this.#target);
      for (const socket of [incoming, outgoing]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          incoming.destroy();
          outgoing.destroy();
        });
      }
      incoming.pipe(outgoing).pipe(incoming);
    }).listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async cut(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    server.close();
    this.breakConnections();
    await once(server, 'close');
  }

  /** New connections work. */
  breakConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
