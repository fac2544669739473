import type { ResolvedHttpOptions } from '../config/http-options.js';
import type { Metrics } from '../metrics/index.js';
import type { LogTarget } from '../runtime/logger.js';
import type { Scheduler } from '../scheduler.js';

/** What the routes are put together from. */
export interface AppParts {
  scheduler: Scheduler;
  options: ResolvedHttpOptions;
  metrics: Metrics;
  log: LogTarget | undefined;
  /** Aborted while the scheduler stops, and after. */
  stopping: () => AbortSignal;
}
