import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { type HttpOptions, type ResolvedHttpOptions, resolveHttpOptions } from '../config/http-options.js';
import { ChronosError } from '../domain/errors.js';
import type { LifecycleState } from '../domain/events.js';
import { attachMetrics, type Metrics } from '../metrics/attach.js';
import type { Logger } from '../domain/logger.js';
import { systemClock } from '../runtime/system-clock.js';
import { waitAtMost } from '../runtime/waiting.js';
import type { AnyScheduler, Scheduler } from '../scheduler.js';
import { createApp } from './app.js';

/** How long requests in progress may continue after close(). */
const CLOSE_GRACE_MS = 1000;

/** The options of `serveHttp()`. */
export interface ServeOptions extends HttpOptions {
  /** The metrics behind `/metrics` and `/readyz`. Default: new metrics that count from this call. */
  metrics?: Metrics;
  /** Receives unexpected errors. Default: they are not logged. */
  logger?: Logger;
}

/** A running HTTP server. */
export interface HttpServer {
  /** For example `http://127.0.0.1:8080`. */
  readonly address: string;
  readonly port: number;
  /** Stops accepting requests, waits a second for those in progress, then closes all connections. */
  close(): Promise<void>;
  /** The same as `close()`, for `await using server = await serveHttp(…)`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Serves health, metrics and the JSON API of a scheduler, started or not. */
export async function serveHttp(scheduler: AnyScheduler, options: ServeOptions): Promise<HttpServer> {
  const { metrics: shared, logger, ...httpOptions } = options;
  const resolved = resolveHttpOptions(httpOptions);
  const metrics = shared ?? attachMetrics(scheduler);
  const stops = watchForStop(scheduler);
  const app = createApp({
    scheduler: scheduler as Scheduler,
    options: resolved,
    metrics,
    logger,
    stopping: stops.signal,
  });
  const release = (): void => {
    stops.detach();
    if (shared === undefined) metrics.detach();
  };
  await listen(app, resolved).catch((error: unknown) => {
    release();
    throw error;
  });
  const { port } = app.server.address() as AddressInfo;
  const host = resolved.host.includes(':') ? `[${resolved.host}]` : resolved.host;
  const close = async (): Promise<void> => {
    const closing = app.close();
    await waitAtMost(systemClock, CLOSE_GRACE_MS, closing);
    app.server.closeAllConnections();
    await closing;
    release();
  };
  return { address: `http://${host}:${port}`, port, close, [Symbol.asyncDispose]: close };
}

async function listen(app: FastifyInstance, { host, port }: ResolvedHttpOptions): Promise<void> {
  try {
    await app.listen({ host, port });
  } catch (cause) {
    await app.close();
    const { code = 'unknown' } = cause as NodeJS.ErrnoException;
    // Not INVALID_OPTIONS: the port may be free again after a restart.
    throw new ChronosError(
      'WRONG_STATE',
      `cannot listen on ${host}, port ${port} (${code}): set HTTP_PORT to a free port, and HTTP_HOST to an address of this machine`,
      { cause },
    );
  }
}

/** `signal()` is aborted from the moment the scheduler stops until it starts again. */
function watchForStop(scheduler: AnyScheduler): { signal: () => AbortSignal; detach: () => void } {
  let stopped = new AbortController();
  const onState = ({ state }: { state: LifecycleState }): void => {
    if (state === 'Stopping' || state === 'Stopped') stopped.abort();
    else if (stopped.signal.aborted) stopped = new AbortController();
  };
  scheduler.on('worker:state', onState);
  return { signal: () => stopped.signal, detach: () => void scheduler.off('worker:state', onState) };
}

export type { HttpOptions } from '../config/http-options.js';
