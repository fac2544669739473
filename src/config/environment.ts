import { isTimezone } from '../domain/time-zone.js';
import type { DaemonOptions } from './call-options.js';
import { readHttpEnvironment } from './http-environment.js';
import type { HttpOptions } from './http-options.js';
import { isMongoUri, MONGO_URI } from './mongo-uri.js';
import type { SchedulerOptions } from './options.js';
import { optionsError } from './options-error.js';
import { duration, listOf, matching, name, oneOf, secret, wholeNumber, type Reader } from './readers.js';
import { withSecretFiles } from './secret-files.js';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** How a worker process is configured: what the Scheduler takes, and what only the process needs. */
export interface WorkerSettings {
  options: SchedulerOptions;
  /** Module to load handlers from. */
  handlers: string | undefined;
  logLevel: LogLevel;
  /** How `daemon` ticks. */
  daemon: DaemonOptions;
  /** `pretty` on a terminal, `json` otherwise, unless set. */
  logFormat: 'pretty' | 'json' | undefined;
  /** Undefined: nothing listens. */
  http: HttpOptions | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Also read from the file that `<variable>_FILE` names. */
const SECRETS = ['MONGODB_URI', 'HTTP_TOKEN', 'HTTP_READ_TOKEN'] as const;

/** Reads the environment of a worker process; every fault is named in one error. */
export function readEnvironment(given: Environment): WorkerSettings {
  const faults: string[] = [];
  const environment = withSecretFiles(given, SECRETS, faults);
  /** An empty variable counts as absent: `CONCURRENCY= npm start` must not mean zero. */
  function read<T>(variable: string, reader: Reader<T>): T | undefined {
    const text = environment[variable]?.trim();
    return text === undefined || text === '' ? undefined : reader(text, variable, faults);
  }

  const uri = read('MONGODB_URI', secret(MONGO_URI, isMongoUri));
  if (uri === undefined && faults.length === 0) {
    faults.push(
      'MONGODB_URI is missing: set it to the connection string of MongoDB, or use `npm start`, which brings its own server',
    );
  }
  const options = {
    uri: uri ?? '',
    concurrency: read('CONCURRENCY', number(wholeNumber(1, 10_000))),
    pollInterval: read('POLL_INTERVAL', milliseconds({ min: 10 })),
    lockTimeout: read('LOCK_TIMEOUT', milliseconds({ min: 500 })),
    shutdownGrace: read('SHUTDOWN_GRACE', milliseconds({ min: 0 })),
    connectTimeout: read('CONNECT_TIMEOUT', milliseconds({ min: 1 })),
    queues: read('QUEUES', list(listOf(name()))),
    timezone: read('TIMEZONE', matching("a time zone like 'Europe/Berlin' or 'UTC'", isTimezone)),
    workerId: read('WORKER_ID', name()),
    shellFiles: read('SHELL_FILES', list(listOf(matching('absolute paths', isText)))),
    urlHosts: read('URL_HOSTS', list(listOf(name()))),
  };
  const daemon = {
    interval: read('TICK_INTERVAL', milliseconds({ min: 100 })),
    maxOverruns: read('MAX_OVERRUNS', number(wholeNumber(1, 1_000_000))),
  };
  const settings = {
    handlers: read('HANDLERS', matching('the path of a module', isText)),
    logLevel: read('LOG_LEVEL', oneOf(...LOG_LEVELS)) ?? 'info',
    logFormat: read('LOG_FORMAT', oneOf('pretty', 'json')),
    http: readHttpEnvironment(read, number, faults),
  };
  if (faults.length > 0) throw optionsError('INVALID_ENVIRONMENT', faults);
  return { ...settings, options: withoutUndefined(options), daemon: withoutUndefined(daemon) };
}

function number(reader: Reader<number>): Reader<number> {
  return (value, path, faults) =>
    reader(/^-?\d+(\.\d+)?$/.test(String(value)) ? Number(value) : value, path, faults);
}

/** `3000` and `'3s'` mean the same. */
function milliseconds(limits: { min: number }): Reader<number> {
  return number(duration(limits));
}

function list<T>(reader: Reader<readonly T[]>): Reader<readonly T[]> {
  return (value, path, faults) =>
    reader(
      String(value)
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
      path,
      faults,
    );
}

function withoutUndefined<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
