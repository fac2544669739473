import type { WorkerSettings } from '../config/environment.js';
import type { PassOptions } from '../config/method-options.js';
import { withHttpServer } from '../http/with-http-server.js';
import type { StopReport } from '../lifecycle/lifecycle.js';
import type { PassReport } from '../lifecycle/pass.js';
import type { Logger } from '../domain/logger.js';
import { monotonic } from '../runtime/system-clock.js';
import { Scheduler } from '../scheduler.js';
import { EXIT } from './exit.js';
import { loadHandlers } from './load-handlers.js';

// Shared by `node dist/worker.js` and the commands `work`, `run` and `daemon`. Each mode resolves to an exit code.

/** Two signals closer together than this count as one: npm and the terminal may both forward the same Ctrl-C. */
const SAME_SIGNAL_MS = 500;

/** Creates a scheduler and loads its handlers. Does not start it. */
export async function openWorker(settings: WorkerSettings, log: Logger): Promise<Scheduler> {
  const scheduler = new Scheduler({ ...settings.options, logger: log });
  if (settings.handlers === undefined)
    log.warn({}, 'HANDLERS is not set: this worker has no handlers and only sweeps and prunes');
  else await loadHandlers(scheduler, settings.handlers);
  log.info({ workerId: scheduler.workerId }, `worker ${scheduler.workerId} is connecting to MongoDB`);
  return scheduler;
}

/** Runs until a signal stops it. */
export async function work(scheduler: Scheduler, { http }: WorkerSettings, log: Logger): Promise<number> {
  const { left } = await withHttpServer(scheduler, http, log, () => {
    exitOnSecondSignal(log);
    return scheduler.forever();
  });
  logLeft(left, log);
  return left.length === 0 ? EXIT.success : EXIT.failure;
}

function logLeft(left: StopReport['left'], log: Logger): void {
  for (const { id, taskType } of left)
    log.warn(
      { jobId: id, taskType },
      `${taskType} was left unfinished; another worker recovers it when its lock expires`,
    );
}

/** One pass, for system cron. */
export async function run(scheduler: Scheduler, _: WorkerSettings, log: Logger): Promise<number> {
  const report = await pass(scheduler, log);
  const { entries, executed, failed } = report;
  for (const { name, result, reason, jobId } of entries) {
    log.info({ name, result, reason, jobId }, `${name}: ${result}${reason === null ? '' : ` (${reason})`}`);
  }
  log.info({ executed, failed }, `pass finished: ${executed} due jobs executed, ${failed} attempts failed`);
  return passExitCode(report);
}

/** A pass that a signal ended early has not done everything. */
export function passExitCode({ failed, isComplete }: PassReport): number {
  if (failed > 0) return EXIT.jobFailed;
  return isComplete ? EXIT.success : EXIT.failure;
}

/** A pass at every tick, until a signal stops it. */
export async function daemon(scheduler: Scheduler, settings: WorkerSettings, log: Logger): Promise<number> {
  exitOnSecondSignal(log);
  const { ticks, overruns, reason, left } = await scheduler.daemon(settings.daemon);
  logLeft(left, log);
  log.info({ ticks, overruns, reason }, `daemon ended after ${ticks} ticks, ${overruns} of them overran`);
  if (reason === 'overruns') return EXIT.overruns;
  return left.length === 0 ? EXIT.success : EXIT.failure;
}

/** One pass, then closes the scheduler. After a signal, running jobs may finish and no more are started. */
export async function pass(
  scheduler: Scheduler,
  log: Logger,
  options: PassOptions = {},
): Promise<PassReport> {
  exitOnSecondSignal(log);
  let stopping: Promise<StopReport> | undefined;
  const stop = (): void => void (stopping ??= scheduler.stop());
  process.on('SIGINT', stop).on('SIGTERM', stop);
  try {
    return await scheduler.runOnce(options);
  } finally {
    const { left } = await (stopping ?? scheduler.stop());
    logLeft(left, log);
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

/**
 * The first signal stops gracefully (the caller listens for it); a second one ends the process immediately. Call this
 * right before the caller starts to listen: once any listener exists, a signal no longer ends the process by itself.
 */
function exitOnSecondSignal(log: Logger): void {
  let firstAt: number | undefined;
  const onSignal = (signal: string): void => {
    const now = monotonic();
    if (firstAt === undefined) {
      firstAt = now;
      log.info({}, `${signal} received, stopping (send it again to stop immediately)`);
    } else if (now - firstAt > SAME_SIGNAL_MS) {
      log.warn({}, `${signal} received again, stopping immediately`);
      process.exit(EXIT.failure);
    }
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
}
