import type { HttpOptions } from '../config/http-options.js';
import type { Logger } from '../domain/logger.js';
import type { Scheduler } from '../scheduler.js';

/**
 * Runs an HTTP server while `work` runs. The server listens before `work` begins, so that health checks see the startup.
 * Without options the HTTP code is not loaded.
 */
export async function withHttpServer<T>(
  scheduler: Scheduler,
  options: HttpOptions | undefined,
  log: Logger,
  work: () => Promise<T>,
): Promise<T> {
  if (options === undefined) return work();
  const { serveHttp } = await import('./server.js');
  const server = await serveHttp(scheduler, { ...options, logger: log });
  const { address, port } = server;
  log.info({ address, port }, `HTTP server listening at ${address}`);
  try {
    return await work();
  } finally {
    await server.close();
    // A late request may have opened the connection to MongoDB again.
    await scheduler.stop(0);
  }
}
