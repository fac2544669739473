import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { resolveHttpOptions, type HttpOptions, type ResolvedHttpOptions } from '../config/http-options.js';
import { ChronosError } from '../domain/errors.js';
import type { LifecycleState } from '../domain/events.js';
import { attachMetrics, type Metrics } from '../metrics/index.js';
import type { LogTarget } from '../runtime/logger.js';
import { systemClock } from '../runtime/system-clock.js';
import { within } from '../runtime/within.js';
import type { Scheduler } from '../scheduler.js';
import { createApp } from './app.js';

/** What requests under way have to end once the server closes, in milliseconds. */
const GRACE = 1000;

export interface ServeOptions extends HttpOptions {
  /** What `/metrics` and `/readyz` show. Default: metrics of its own, from the moment it is called. */
  metrics?: Metrics;
  /** Told of errors that nobody expected. Default: nobody is. */
  log?: LogTarget;
}

export interface HttpServer {
  /** Like `http://127.0.0.1:8080`. */
  readonly address: string;
  readonly port: number;
  /** Accepts nothing any more, waits a second for requests under way, and leaves no connection open. */
  close(): Promise<void>;
}

/** Answers over HTTP for a scheduler, started or not: health, metrics, and everything one does with it. */
export async function serveHttp(scheduler: Scheduler<object>, options: ServeOptions): Promise<HttpServer> {
  const { metrics: given, log, ...said } = options;
  const resolved = resolveHttpOptions(said);
  const metrics = given ?? attachMetrics(scheduler);
  const stops = watchForStop(scheduler);
  const app = createApp({
    // Which payloads go with which task type is for programs; what comes over the wire is checked when it is stored.
    scheduler: scheduler,
    options: resolved,
    metrics,
    log,
    stopping: stops.signal,
  });
  const release = (): void => {
    stops.detach();
    if (given === undefined) metrics.detach();
  };
  await listen(app, resolved).catch((error: unknown) => {
    release();
    throw error;
  });
  const { port } = app.server.address() as AddressInfo;
  const host = resolved.host.includes(':') ? `[${resolved.host}]` : resolved.host;
  return {
    address: `http://${host}:${port}`,
    port,
    close: async () => {
      const closing = app.close();
      await within(systemClock, GRACE, closing);
      app.server.closeAllConnections();
      await closing;
      release();
    },
  };
}

async function listen(app: FastifyInstance, { host, port }: ResolvedHttpOptions): Promise<void> {
  try {
    await app.listen({ host, port });
  } catch (cause) {
    await app.close();
    const { code = 'unknown' } = cause as NodeJS.ErrnoException;
    throw new ChronosError(
      // The port may be free again in a moment: worth another start.
      'WRONG_STATE',
      `cannot listen on ${host}, port ${port} (${code}): choose another HTTP_PORT, or an HTTP_HOST that this machine has`,
      { cause },
    );
  }
}

/** A signal that is aborted while the scheduler stops and after, until it starts again. */
function watchForStop(scheduler: Scheduler<object>): { signal: () => AbortSignal; detach: () => void } {
  let stopped = new AbortController();
  const note = ({ state }: { state: LifecycleState }): void => {
    if (state === 'Stopping' || state === 'Stopped') stopped.abort();
    else if (stopped.signal.aborted) stopped = new AbortController();
  };
  scheduler.on('worker:state', note);
  return { signal: () => stopped.signal, detach: () => void scheduler.off('worker:state', note) };
}
