import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import dotenv from 'dotenv';
import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';
import { readEnvironment, type WorkerSettings } from './src/config/environment.js';
import { whileServing } from './src/http/for-worker.js';
import { attachLogger, ChronosError, Scheduler } from './src/index.js';

/**
 * 0 stopped cleanly, 1 stopped with work left, 2 wrong options or environment, 3 MongoDB not reachable, 4 a job of the
 * pass failed, 5 too many overruns in a row.
 */
const EXIT = { clean: 0, workLeft: 1, misconfigured: 2, unreachable: 3, jobFailed: 4, overruns: 5 } as const;

/** What the process does, as its first argument: work until it is stopped, one pass, or a pass at every tick. */
const MODES = { work, run, daemon } as const;

/** npm and a terminal may both send the same Ctrl-C: signals this close together are one. */
const SAME_SIGNAL_MS = 500;

const HANDLERS_GRACE_MS = 2000;

async function main(): Promise<number> {
  dotenv.config({ quiet: true });
  const settings = readEnvironment(process.env);
  const mode = readMode(process.argv[2]);
  const log = createLogger(settings);
  const scheduler = new Scheduler(settings.options);
  attachLogger(scheduler, log);
  await loadHandlers(scheduler, settings.handlers, log);
  exitOnSecondSignal(log);
  log.info({ workerId: scheduler.workerId }, `worker ${scheduler.workerId} connects to MongoDB`);
  return MODES[mode](scheduler, settings, log);
}

function readMode(argument: string | undefined): keyof typeof MODES {
  const mode = argument ?? 'work';
  if (Object.hasOwn(MODES, mode)) return mode as keyof typeof MODES;
  throw new ChronosError(
    'INVALID_ENVIRONMENT',
    `the first argument is one of ${Object.keys(MODES).join(', ')} (work when left out), got '${mode}'`,
  );
}

async function work(scheduler: Scheduler, { http }: WorkerSettings, log: Logger): Promise<number> {
  const { left } = await whileServing(scheduler, http, log, () => scheduler.forever());
  for (const { id, taskType } of left)
    log.warn({ jobId: id, taskType }, `${taskType} was left unfinished; its lock runs out by itself`);
  return left.length === 0 ? EXIT.clean : EXIT.workLeft;
}

/** One pass for system cron; the exit code says whether anything failed. */
async function run(scheduler: Scheduler, _: WorkerSettings, log: Logger): Promise<number> {
  const stop = (): void => void scheduler.stop();
  process.on('SIGINT', stop).on('SIGTERM', stop);
  const { entries, executed, failed } = await scheduler.runOnce().finally(() => scheduler.stop());
  for (const { name, result, reason, jobId } of entries) {
    log.info({ name, result, reason, jobId }, `${name}: ${result}${reason === null ? '' : ` (${reason})`}`);
  }
  log.info({ executed, failed }, `pass over: ${executed} due jobs executed, ${failed} attempts failed`);
  return failed === 0 ? EXIT.clean : EXIT.jobFailed;
}

async function daemon(scheduler: Scheduler, settings: WorkerSettings, log: Logger): Promise<number> {
  const { ticks, overruns, reason } = await scheduler.daemon(settings.daemon);
  log.info({ ticks, overruns, reason }, `daemon ended after ${ticks} ticks, ${overruns} of them overran`);
  return reason === 'overruns' ? EXIT.overruns : EXIT.clean;
}

function createLogger({ logLevel, logFormat }: WorkerSettings): Logger {
  const format = logFormat ?? (process.stdout.isTTY ? 'pretty' : 'json');
  if (format === 'json') return pino({ level: logLevel });
  const stream = pretty({
    sync: true,
    colorize: process.stdout.isTTY,
    hideObject: true,
    ignore: 'pid,hostname',
    translateTime: 'SYS:HH:MM:ss.l',
    messageFormat: '{msg}{if err.message}: {err.message}{end}{if jobId}  [{jobId}]{end}',
  });
  return pino({ level: logLevel }, stream);
}

/** A module exports handlers by task type, or a default function (or object of handlers) that gets the scheduler. */
async function loadHandlers(scheduler: Scheduler, path: string | undefined, log: Logger): Promise<void> {
  if (path === undefined) {
    log.warn('HANDLERS is not set: this worker has no handlers and will only sweep and prune');
    return;
  }
  const module = (await import(pathToFileURL(resolve(path)).href).catch((cause: unknown) => {
    throw new ChronosError(
      'INVALID_ENVIRONMENT',
      `HANDLERS names a module that cannot be loaded: ${path}: ${(cause as Error).message}`,
      { cause },
    );
  })) as Record<string, unknown>;
  const { default: main, ...named } = module;
  try {
    if (typeof main === 'function') await (main as (scheduler: Scheduler) => unknown)(scheduler);
    const handlers =
      typeof main === 'function' ? {} : { ...named, ...(main as Record<string, unknown> | undefined) };
    for (const [taskType, handler] of Object.entries(handlers)) {
      scheduler.registerHandler(taskType, handler as (payload: unknown) => unknown);
    }
  } catch (cause) {
    const { message } = cause as Error;
    throw new ChronosError(
      'INVALID_ENVIRONMENT',
      `HANDLERS: ${path} did not register its handlers: ${message} (its exports must be handlers, or a default function that receives the scheduler)`,
      { cause },
    );
  }
}

/** The first signal stops gracefully (`forever` does that); a second one ends the process at once. */
function exitOnSecondSignal(log: Logger): void {
  let first: number | undefined;
  const count = (signal: string): void => {
    const now = performance.now();
    if (first === undefined) {
      first = now;
      log.info(`${signal}: stopping; once more to stop at once`);
    } else if (now - first > SAME_SIGNAL_MS) {
      log.warn(`${signal} again: stopping at once`);
      process.exit(EXIT.workLeft);
    }
  };
  process.on('SIGINT', count).on('SIGTERM', count);
}

function exitCodeOf(error: unknown): number {
  if (!(error instanceof ChronosError)) return EXIT.workLeft;
  return error.code === 'MONGODB_UNREACHABLE' ? EXIT.unreachable : EXIT.misconfigured;
}

/** Chronos leaves nothing behind that keeps the process alive; a handler's module may. */
function exitSoon(code: number): void {
  process.exitCode = code;
  setTimeout(() => {
    console.error('something that the handlers opened keeps the process alive: exiting anyway');
    process.exit(code);
  }, HANDLERS_GRACE_MS).unref();
}

main().then(exitSoon, (error: unknown) => {
  // An error of our own explains itself; a stack would only hide that.
  console.error(error instanceof ChronosError ? error.message : error);
  exitSoon(exitCodeOf(error));
});
