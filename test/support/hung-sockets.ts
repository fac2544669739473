import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

/**
 * The sockets that this process opens to a port. To reproduce that the driver waits forever: it writes to a socket that
 * is destroyed and has not emitted `close` yet, and then waits for `drain`.
 */
export class OpenSockets {
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  readonly #add = (message: unknown): void => {
    const { socket } = message as { socket: Socket };
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    socket.once('connect', () => {
      // Later, so that the driver does not hang: its monitors would never recover from that.
      setImmediate(() => {
        if (this.#isBlocked && socket.remotePort === this.#port) socket.destroy();
      });
    });
  };
  #isBlocked = false;

  constructor(port: number) {
    this.#port = port;
    subscribe('net.client.socket', this.#add);
  }

  /** Call it in the same turn of the event loop as an operation: what it writes to these sockets hangs. */
  destroyAll(): void {
    for (const socket of this.#sockets) if (socket.remotePort === this.#port) socket.destroy();
  }

  /** Until `unblock`, connections of this thread are broken and new ones fail, but not those of other threads. */
  block(): void {
    this.#isBlocked = true;
    setImmediate(() => this.destroyAll());
  }

  unblock(): void {
    this.#isBlocked = false;
  }

  close(): void {
    unsubscribe('net.client.socket', this.#add);
  }
}
