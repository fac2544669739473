import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { HttpProblem } from './problem.js';

const MAX_CONNECTIONS = 256;
/** Kept for connections without an authorized request, such as those of health checks. */
const RESERVED_CONNECTIONS = 64;
const MAX_AUTHORIZED_REQUESTS = MAX_CONNECTIONS - RESERVED_CONNECTIONS;

/**
 * Limits connections in such a way that health checks always get one. When the limit is reached, a new connection replaces
 * an open one: the oldest that never had an authorized request, or, if only a few are like that, the oldest that is idle.
 */
export class Connections {
  /** In the order of their age. The value: whether it had an authorized request. */
  readonly #open = new Map<Socket, boolean>();
  /** Authorized requests in progress. */
  readonly #authorized = new Map<ServerResponse, Socket>();

  limit(server: Server): void {
    server.on('connection', (socket: Socket) => {
      if (this.#open.size >= MAX_CONNECTIONS) this.#closeOne();
      this.#open.set(socket, false);
      socket.once('close', () => this.#forget(socket));
    });
  }

  /** Call it when a request has shown its token. Throws if too many of them are in progress. */
  admit({ raw: response, request }: FastifyReply): void {
    const { socket } = request.raw;
    if (this.#authorized.size >= MAX_AUTHORIZED_REQUESTS) {
      throw new HttpProblem(
        503,
        'TOO_MANY_REQUESTS',
        `${MAX_AUTHORIZED_REQUESTS} requests are in progress, which is the limit: send fewer at once`,
      );
    }
    if (this.#open.has(socket)) this.#open.set(socket, true);
    this.#authorized.set(response, socket);
    response.once('close', () => this.#authorized.delete(response));
  }

  isAuthorized({ raw }: FastifyReply): boolean {
    return this.#authorized.has(raw);
  }

  /** A response that still waits for earlier ones of its connection gets no event when the connection closes. */
  #forget(closed: Socket): void {
    this.#open.delete(closed);
    for (const [response, socket] of this.#authorized) {
      if (socket === closed) this.#authorized.delete(response);
    }
  }

  #closeOne(): void {
    const busy = new Set(this.#authorized.values());
    const open = [...this.#open];
    const unknown = open.filter(([, isKnown]) => !isKnown);
    const idle = open.filter(([socket, isKnown]) => isKnown && !busy.has(socket));
    const [socket] = (unknown.length > RESERVED_CONNECTIONS ? unknown : [...idle, ...unknown])[0] ?? [];
    if (socket === undefined) return;
    this.#open.delete(socket);
    socket.destroy();
  }
}
