import { isAbsolute } from 'node:path';
import type { RetryPolicy } from '../domain/backoff.js';
import type { Clock } from '../domain/clock.js';
import type { Duration } from '../domain/duration.js';
import type { FieldSchedule } from '../domain/field-schedule.js';
import { isTimezone } from '../domain/time-zone.js';
import { isMongoUri, MONGO_URI } from './mongo-uri.js';
import { optionsError } from './options-error.js';
import { currentEnvironment } from './process.js';
import {
  duration,
  listOf,
  matching,
  name,
  record,
  secret,
  throwing,
  wholeNumber,
  type Readers,
} from './readers.js';
import { DEFAULT_RETRIES, retryReader, type RetryOptions } from './retry-options.js';
import { readSymbols, type Symbols } from './symbols.js';

export interface RetentionOptions {
  /** Default `'7d'`. */
  completed?: Duration;
  /** Default `'30d'`. */
  failed?: Duration;
  /** Default `'30d'`. */
  cancelled?: Duration;
}

export interface SchedulerOptions {
  /** Connection string of MongoDB, with the database's name. */
  uri: string;
  /** Queues this process serves. Default `['default']`. */
  queues?: readonly string[];
  /** Handlers that run at the same time in this process. Default 5. */
  concurrency?: number;
  /**
   * How often to look for due jobs when nothing else wakes the worker; six times more rarely while a change stream tells
   * of them. Default `'5s'`.
   */
  pollInterval?: Duration;
  /** How long a lock holds without renewal; it is renewed at a third of it. Default `'60s'`. */
  lockTimeout?: Duration;
  /** How often to recover jobs whose lock expired. Default `'30s'`, or half of `lockTimeout` when that is shorter. */
  sweepInterval?: Duration;
  /**
   * How often this process shows that it lives and measures the database's clock. Default `'10s'`, or a third of
   * `lockTimeout` when that is shorter. At most `'20s'`: a worker that is silent for a minute counts as gone.
   */
  heartbeatInterval?: Duration;
  /** Longest time `stop()` takes, handlers included. Default `'30s'`. */
  shutdownGrace?: Duration;
  /** Longest time of one attempt. Default `'1h'`. */
  timeout?: Duration;
  /** Time a handler has to end after its signal was aborted, before its slot is reported stuck. Default `'5s'`. */
  timeoutGrace?: Duration;
  /** Default: 3 attempts in all, base 1 s, cap 60 s, full jitter. */
  retries?: RetryOptions;
  /** A job that took its process with it this many times ends FAILED. Default 3. */
  maxCrashes?: number;
  /** Largest payload, in bytes of BSON. Default 262144 (256 KiB). */
  maxPayloadBytes?: number;
  /** How long finished jobs are kept, by status. */
  retention?: RetentionOptions;
  /** How long rows of the execution log are kept. Default `'30d'`. */
  executionRetention?: Duration;
  /** How often finished jobs past their retention are removed. Default `'10m'`. */
  pruneInterval?: Duration;
  /** How long `start()` keeps trying to reach MongoDB. Default `'60s'`. */
  connectTimeout?: Duration;
  /** What dates without a zone mean. Default `'UTC'`. */
  timezone?: string;
  /** What `environments()` of a schedule is compared with. Default `NODE_ENV`, else `'development'`. */
  environment?: string;
  /** Names of your own for rules, beside `EVERY_HOUR` and its like: fields or cron expressions. */
  symbols?: Readonly<Record<string, FieldSchedule | string>>;
  /** Files that the handler `shell` may run for stored schedules and dispatched jobs, as absolute paths. Default none. */
  shellFiles?: readonly string[];
  /** Hosts, addresses or blocks like `'10.0.0.0/8'` that the handler `url` may reach although they are private. Default none. */
  urlHosts?: readonly string[];
  /** Unique name of this process. Default: host name, process id and a random part. */
  workerId?: string;
  /** Handlers to register at once, by task type. */
  taskHandlers?: Readonly<Record<string, unknown>>;
  /** Source of time. Default: the database's clock. */
  clock?: Clock;
}

/** The same, complete, in milliseconds, frozen. */
export interface ResolvedOptions {
  readonly uri: string;
  readonly queues: readonly string[];
  readonly concurrency: number;
  readonly pollInterval: number;
  readonly lockTimeout: number;
  readonly sweepInterval: number;
  readonly heartbeatInterval: number;
  readonly shutdownGrace: number;
  readonly timeout: number;
  readonly timeoutGrace: number;
  readonly retries: RetryPolicy;
  readonly maxCrashes: number;
  readonly maxPayloadBytes: number;
  readonly retention: Readonly<Record<'completed' | 'failed' | 'cancelled', number>>;
  readonly executionRetention: number;
  readonly pruneInterval: number;
  readonly connectTimeout: number;
  readonly timezone: string;
  readonly environment: string;
  readonly symbols: Symbols;
  readonly shellFiles: readonly string[];
  readonly urlHosts: readonly string[];
  readonly workerId: string | undefined;
  readonly taskHandlers: Readonly<Record<string, unknown>>;
  readonly clock: Clock | undefined;
}

export const DEFAULT_QUEUE = 'default';
export const DEFAULT_PRIORITY = 100;

const DAY = 86_400_000;

/** A third of the silence after which the store counts a worker as gone: two may be lost. */
const LONGEST_HEARTBEAT = 20_000;
const GONE_WHEN_SILENT = 'a worker that is silent for a minute counts as gone, although it works';

export const DEFAULTS = {
  queues: [DEFAULT_QUEUE],
  concurrency: 5,
  pollInterval: 5000,
  lockTimeout: 60_000,
  sweepInterval: 30_000,
  heartbeatInterval: 10_000,
  shutdownGrace: 30_000,
  timeout: 3_600_000,
  timeoutGrace: 5000,
  retries: DEFAULT_RETRIES,
  maxCrashes: 3,
  maxPayloadBytes: 256 * 1024,
  retention: { completed: 7 * DAY, failed: 30 * DAY, cancelled: 30 * DAY },
  executionRetention: 30 * DAY,
  pruneInterval: 600_000,
  connectTimeout: 60_000,
  timezone: 'UTC',
  symbols: {},
  shellFiles: [],
  urlHosts: [],
  workerId: undefined,
  taskHandlers: {},
  clock: undefined,
} as const satisfies Omit<ResolvedOptions, 'uri' | 'environment'>;

/** As read: nested records may still be partial. */
type ReadOptions = Omit<ResolvedOptions, 'retries' | 'retention' | 'workerId' | 'clock'> & {
  retries: Partial<RetryPolicy>;
  retention: Partial<ResolvedOptions['retention']>;
  workerId: string;
  clock: Clock;
};

const optionReaders: Readers<ReadOptions> = {
  uri: secret(MONGO_URI, isMongoUri),
  queues: listOf(name()),
  concurrency: wholeNumber(1, 10_000),
  pollInterval: duration({ min: 10, max: DAY }),
  lockTimeout: duration({ min: 500 }),
  sweepInterval: duration({ min: 50 }),
  heartbeatInterval: duration({ min: 50, max: LONGEST_HEARTBEAT, why: GONE_WHEN_SILENT }),
  shutdownGrace: duration(),
  timeout: duration({ min: 1 }),
  timeoutGrace: duration(),
  retries: retryReader,
  maxCrashes: wholeNumber(1, 1000),
  maxPayloadBytes: wholeNumber(1024, 15 * 1024 * 1024),
  retention: record<ResolvedOptions['retention']>({
    completed: duration(),
    failed: duration(),
    cancelled: duration(),
  }),
  executionRetention: duration({ min: 1000 }),
  pruneInterval: duration({ min: 1000 }),
  connectTimeout: duration({ min: 1 }),
  timezone: matching("a time zone like 'Europe/Berlin' or 'UTC'", isTimezone),
  environment: name(),
  symbols: throwing(readSymbols),
  shellFiles: listOf(matching('an absolute path', isAbsolutePath), { mayBeEmpty: true }),
  urlHosts: listOf(name(), { mayBeEmpty: true }),
  workerId: name(),
  taskHandlers: matching('an object of handlers by task type', isRecord),
  clock: matching('an object with now(), monotonic() and sleep()', isClock),
};

/** Raw → resolved → frozen, once. Every fault is named in one error. */
export function resolveOptions(input: unknown): ResolvedOptions {
  const faults: string[] = [];
  const read = record(optionReaders)(input, 'options', faults) ?? {};
  if (read.uri === undefined && faults.every((fault) => !fault.startsWith('options.uri'))) {
    faults.push('options.uri is missing: give the connection string of MongoDB');
  }
  const resolved: ResolvedOptions = {
    ...DEFAULTS,
    uri: '',
    environment: currentEnvironment(),
    ...shortWithTheLock(read.lockTimeout ?? DEFAULTS.lockTimeout),
    ...read,
    retries: Object.freeze({ ...DEFAULTS.retries, ...read.retries }),
    retention: Object.freeze({ ...DEFAULTS.retention, ...read.retention }),
  };
  const { lockTimeout, heartbeatInterval } = resolved;
  if (lockTimeout <= heartbeatInterval) {
    faults.push(
      `options.lockTimeout (${lockTimeout} ms) must be longer than options.heartbeatInterval (${heartbeatInterval} ms)`,
    );
  }
  if (faults.length > 0) throw optionsError('INVALID_OPTIONS', faults);
  return Object.freeze({ ...resolved, queues: Object.freeze([...resolved.queues]) });
}

/** With a short lock these have to be short too; nobody should have to set three options to shorten one. */
function shortWithTheLock(lockTimeout: number): Pick<ResolvedOptions, 'sweepInterval' | 'heartbeatInterval'> {
  return {
    sweepInterval: Math.min(DEFAULTS.sweepInterval, lockTimeout / 2),
    heartbeatInterval: Math.min(DEFAULTS.heartbeatInterval, lockTimeout / 3),
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isAbsolutePath(value: unknown): value is string {
  return typeof value === 'string' && isAbsolute(value);
}

function isClock(value: unknown): value is Clock {
  return (
    isRecord(value) && ['now', 'monotonic', 'sleep'].every((method) => typeof value[method] === 'function')
  );
}
