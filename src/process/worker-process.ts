import type { PassOptions } from '../config/call-options.js';
import type { WorkerSettings } from '../config/environment.js';
import { whileServing } from '../http/for-worker.js';
import type { PassReport } from '../run-once.js';
import { attachLogger, type LogTarget } from '../runtime/logger.js';
import { systemClock } from '../runtime/system-clock.js';
import { Scheduler } from '../scheduler.js';
import { EXIT } from './exit.js';
import { loadHandlers } from './handlers.js';
import { exitOnSecondSignal } from './signals.js';

// What `node dist/worker.js` and the commands `work`, `run` and `daemon` have in common.

/** A scheduler with the handlers of the settings, whose events are logged; not started. */
export async function openWorker(settings: WorkerSettings, log: LogTarget): Promise<Scheduler> {
  const scheduler = new Scheduler(settings.options);
  attachLogger(scheduler, log);
  if (settings.handlers === undefined)
    log.warn({}, 'HANDLERS is not set: this worker has no handlers and will only sweep and prune');
  else await loadHandlers(scheduler, settings.handlers);
  log.info({ workerId: scheduler.workerId }, `worker ${scheduler.workerId} connects to MongoDB`);
  return scheduler;
}

/** Works until it is told to stop. Resolves to the exit code, as all of these do. */
export async function work(scheduler: Scheduler, { http }: WorkerSettings, log: LogTarget): Promise<number> {
  const { left } = await whileServing(scheduler, http, log, () => {
    exitOnSecondSignal(systemClock, log);
    return scheduler.forever();
  });
  for (const { id, taskType } of left)
    log.warn({ jobId: id, taskType }, `${taskType} was left unfinished; its lock runs out by itself`);
  return left.length === 0 ? EXIT.fine : EXIT.wrong;
}

/** One pass for system cron; the exit code says whether anything failed. */
export async function run(scheduler: Scheduler, _: WorkerSettings, log: LogTarget): Promise<number> {
  const { entries, executed, failed } = await pass(scheduler, log);
  for (const { name, result, reason, jobId } of entries) {
    log.info({ name, result, reason, jobId }, `${name}: ${result}${reason === null ? '' : ` (${reason})`}`);
  }
  log.info({ executed, failed }, `pass over: ${executed} due jobs executed, ${failed} attempts failed`);
  return failed === 0 ? EXIT.fine : EXIT.jobFailed;
}

/** A pass at every tick until it is told to stop. */
export async function daemon(
  scheduler: Scheduler,
  settings: WorkerSettings,
  log: LogTarget,
): Promise<number> {
  exitOnSecondSignal(systemClock, log);
  const { ticks, overruns, reason } = await scheduler.daemon(settings.daemon);
  log.info({ ticks, overruns, reason }, `daemon ended after ${ticks} ticks, ${overruns} of them overran`);
  return reason === 'overruns' ? EXIT.overruns : EXIT.fine;
}

/** One pass; a signal lets what runs end, and begins nothing more. Closes the scheduler. */
export async function pass(
  scheduler: Scheduler,
  log: LogTarget,
  options: PassOptions = {},
): Promise<PassReport> {
  exitOnSecondSignal(systemClock, log);
  const stop = (): void => void scheduler.stop();
  process.on('SIGINT', stop).on('SIGTERM', stop);
  try {
    return await scheduler.runOnce(options);
  } finally {
    await scheduler.stop();
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}
