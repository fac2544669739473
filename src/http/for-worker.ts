import type { HttpOptions } from '../config/http-options.js';
import type { LogTarget } from '../runtime/logger.js';
import type { Scheduler } from '../scheduler.js';

/**
 * Answers over HTTP while `work` does: from before it begins, so that its start can be watched, until it has ended.
 * Without options nothing listens, and nothing of the server is loaded.
 */
export async function whileServing<T>(
  scheduler: Scheduler,
  options: HttpOptions | undefined,
  log: LogTarget,
  work: () => Promise<T>,
): Promise<T> {
  if (options === undefined) return work();
  const { serveHttp } = await import('./serve.js');
  const server = await serveHttp(scheduler, { ...options, log });
  const { address, port } = server;
  log.info({ address, port }, `answers over HTTP at ${address}`);
  try {
    return await work();
  } finally {
    await server.close();
    // A request that came at the last moment may have opened the connection again.
    await scheduler.stop(0);
  }
}
