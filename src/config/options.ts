import { isAbsolute } from 'node:path';
import type { FieldSchedule } from '../domain/calendar/field-schedule.js';
import type { Clock } from '../domain/clock.js';
import { didYouMean } from '../domain/did-you-mean.js';
import type { Duration } from '../domain/duration.js';
import type { HandlerRetries } from '../domain/job/backoff.js';
import type { Retention } from '../domain/job/job.js';
import { isRecord } from '../domain/language.js';
import type { Logger } from '../domain/logger.js';
import * as v from '../domain/validation.js';
import {
  checkConnection,
  clientShape,
  connectionShape,
  databaseShape,
  DEFAULT_PREFIX,
  type MongoClientLike,
  type MongooseConnectionLike,
  prefixShape,
  uriShape,
} from './connection-options.js';
import {
  DEFAULT_RETRIES,
  type HandlerRetryOptions,
  handlerRetryShape,
  leaseShape,
  type RetentionOptions,
  retentionShape,
} from './handler-options.js';
import { currentEnvironment } from './process-env.js';
import { parseSymbols, timezoneShape } from './rule-options.js';

/** How this process serves one queue. */
export interface QueueSettings {
  /**
   * How many slots jobs of this queue may occupy in this process, so that long ones cannot take them all. Default: all of
   * them.
   */
  slots?: number;
}

/** The options of `new Scheduler()`, with one of `uri`, `client` and `connection`. */
export type SchedulerOptions = AllSchedulerOptions &
  (
    | Required<Pick<AllSchedulerOptions, 'uri'>>
    | Required<Pick<AllSchedulerOptions, 'client'>>
    | Required<Pick<AllSchedulerOptions, 'connection'>>
  );

/** Every option of `new Scheduler()`. */
export interface AllSchedulerOptions {
  /** Connection string of MongoDB, including the name of the database. Set this, `client` or `connection`. */
  uri?: string;
  /** A `MongoClient` of the package `mongodb`, version 7, to use instead of `uri`. `stop()` leaves it open. */
  client?: MongoClientLike;
  /** A connection of mongoose, version 9, to use instead of `uri`. `stop()` leaves it open. */
  connection?: MongooseConnectionLike;
  /** Name of the database. Default: the one in the connection string, or the one that `connection` uses. */
  database?: string;
  /** The names of all collections start with this text; it may be empty. Default `'chronos_'`. */
  prefix?: string;
  /** Queues this process serves. Default `['default']`. */
  queues?: readonly string[];
  /** Settings for some of these queues, by name. Default none. */
  queueSettings?: Readonly<Record<string, QueueSettings>>;
  /** How many jobs this process runs at the same time. Default 5. */
  concurrency?: number;
  /**
   * How often to poll for due jobs if nothing else wakes the worker. Six times this long while a change stream reports
   * new jobs. Default `'5s'`.
   */
  pollInterval?: Duration;
  /** How long a lock lasts without renewal; it is renewed after a third of that. Default `'60s'`. */
  lockTimeout?: Duration;
  /** How often to recover jobs whose lock expired. Default `'30s'`, or half of `lockTimeout` if that is shorter. */
  sweepInterval?: Duration;
  /**
   * How often this process writes its heartbeat and measures the database's clock. Default `'10s'`, or a third of
   * `lockTimeout` if that is shorter. At most `'20s'`: a worker without a heartbeat for a minute counts as gone.
   */
  heartbeatInterval?: Duration;
  /** How long `stop()` may take, including running handlers. Default `'30s'`. */
  shutdownGrace?: Duration;
  /** How long one attempt may take. Default `'1h'`. */
  timeout?: Duration;
  /** How long a handler may take to end after its signal was aborted, before it is reported as stuck. Default `'5s'`. */
  timeoutGrace?: Duration;
  /** Default: 3 attempts in all, base 1 s, cap 60 s, full jitter. */
  retries?: HandlerRetryOptions;
  /** A job whose process crashed this many times becomes FAILED. Default 3. */
  maxCrashes?: number;
  /** Maximum size of a payload in bytes of BSON. Default 262144 (256 KiB). */
  maxPayloadBytes?: number;
  /** How long finished jobs are kept, with their rows in the execution log. Default: `'1d'`, failed ones `'30d'`. */
  retention?: RetentionOptions;
  /** How often finished jobs past their retention are removed. Default `'10m'`. */
  pruneInterval?: Duration;
  /** How long `start()` keeps trying to reach MongoDB, in all of its steps. Default `'60s'`. */
  connectTimeout?: Duration;
  /** The time zone of dates without a zone. Default `'UTC'`. */
  timezone?: string;
  /** Compared with `environments()` of schedules. Default `NODE_ENV`, else `'development'`. */
  environment?: string;
  /** Your own names for rules, in addition to `EVERY_HOUR` and the like: fields or cron expressions. */
  symbols?: Readonly<Record<string, FieldSchedule | string>>;
  /** Files that the handler `shell` may run for stored schedules and dispatched jobs, as absolute paths. Default none. */
  shellFiles?: readonly string[];
  /**
   * Names of variables of this process that programs of `shell` inherit, in addition to `PATH`, `HOME`, `LANG`, `LC_ALL`,
   * `TZ` and `TMPDIR`. Default none.
   */
  shellInheritEnv?: readonly string[];
  /**
   * Names of variables that the `env` of a dispatched or stored `shell` payload may set, in addition to `LANG`, `LC_ALL` and
   * `TZ`. Definitions in code may set any. Default none.
   */
  shellPayloadEnv?: readonly string[];
  /** Private hosts, addresses or blocks like `'10.0.0.0/8'` that the handler `url` may reach. Default none. */
  urlHosts?: readonly string[];
  /** Unique name of this process. Default: host name, process id and a random part. */
  workerId?: string;
  /** Handlers to register, by task type. */
  taskHandlers?: Readonly<Record<string, unknown>>;
  /**
   * Where events are logged: pino, or any logger with `debug`, `info`, `warn` and `error`, each called with `(fields,
   * message)`. `false` turns logging off. Default: the console, as readable lines, warnings and errors only.
   */
  logger?: Logger | false;
  /** Source of time. Default: the database's clock. */
  clock?: Clock;
}

export const DEFAULT_QUEUE = 'default';
export const DEFAULT_PRIORITY = 100;

const DAY_MS = 86_400_000;
const MAX_CONCURRENCY = 10_000;

/** A third of the minute after which a silent worker counts as gone: two heartbeats may be lost. */
const MAX_HEARTBEAT_MS = 20_000;
const WHY_MAX_HEARTBEAT = 'a worker without a heartbeat for a minute counts as gone';

const variableNames = v.listOf(
  v.matching<string>('the name of an environment variable', isVariableName, { type: 'string' }),
  { min: 0 },
);

export const optionShapes = {
  uri: uriShape,
  client: clientShape,
  connection: connectionShape,
  database: databaseShape,
  prefix: prefixShape,
  queues: v.listOf(v.name),
  queueSettings: v.mapOf(v.object<Required<QueueSettings>>({ slots: v.integer(1, MAX_CONCURRENCY) })),
  concurrency: v.integer(1, MAX_CONCURRENCY),
  pollInterval: v.duration({ min: 10, max: DAY_MS }),
  lockTimeout: leaseShape,
  sweepInterval: v.duration({ min: 50 }),
  heartbeatInterval: v.duration({ min: 50, max: MAX_HEARTBEAT_MS, why: WHY_MAX_HEARTBEAT }),
  shutdownGrace: v.duration(),
  timeout: v.duration({ min: 1 }),
  timeoutGrace: v.duration(),
  retries: handlerRetryShape,
  maxCrashes: v.integer(1, 1000),
  maxPayloadBytes: v.integer(1024, 15 * 1024 * 1024),
  retention: retentionShape,
  pruneInterval: v.duration({ min: 1000 }),
  connectTimeout: v.duration({ min: 1 }),
  timezone: timezoneShape,
  environment: v.name,
  symbols: v.throwing(parseSymbols),
  shellFiles: v.listOf(v.matching('an absolute path', isAbsolutePath), { min: 0 }),
  shellInheritEnv: variableNames,
  shellPayloadEnv: variableNames,
  urlHosts: v.listOf(v.name, { min: 0 }),
  workerId: v.name,
  taskHandlers: v.matching('an object of handlers by task type', isRecord),
  logger: v.matching('false, or a logger with debug(), info(), warn() and error()', isLogger),
  clock: v.matching('an object with now(), monotonic() and sleep()', isClock),
} satisfies Record<keyof AllSchedulerOptions, v.Shape<unknown>>;

const optionsShape = v.object<ParsedOptions>(optionShapes);

type ParsedOptions = v.Parsed<typeof optionShapes>;

/** All options with their defaults; durations in milliseconds. Frozen. */
export type ResolvedOptions = Readonly<
  Omit<
    ParsedOptions,
    'uri' | 'client' | 'connection' | 'database' | 'retries' | 'retention' | 'workerId' | 'logger' | 'clock'
  > & {
    uri: string | undefined;
    client: MongoClientLike | undefined;
    connection: MongooseConnectionLike | undefined;
    database: string | undefined;
    retries: HandlerRetries;
    retention: Readonly<Retention>;
    workerId: string | undefined;
    /** Undefined: the console. */
    logger: Logger | false | undefined;
    clock: Clock | undefined;
  }
>;

export const DEFAULTS = {
  uri: undefined,
  client: undefined,
  connection: undefined,
  database: undefined,
  prefix: DEFAULT_PREFIX,
  queues: [DEFAULT_QUEUE],
  queueSettings: {},
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
  retention: { completed: DAY_MS, failed: 30 * DAY_MS, cancelled: DAY_MS },
  pruneInterval: 600_000,
  connectTimeout: 60_000,
  timezone: 'UTC',
  symbols: {},
  shellFiles: [],
  shellInheritEnv: [],
  shellPayloadEnv: [],
  urlHosts: [],
  workerId: undefined,
  taskHandlers: {},
  logger: undefined,
  clock: undefined,
} as const satisfies Omit<ResolvedOptions, 'environment'>;

/** Parses, fills in the defaults and freezes. Throws one error that lists every problem. */
export function resolveOptions(input: unknown): ResolvedOptions {
  const errors: string[] = [];
  const parsed = v.readable(
    () => {
      const options: Partial<ParsedOptions> = optionsShape.read(input, 'options', errors) ?? {};
      checkConnection(input, errors);
      return options;
    },
    'options',
    'INVALID_OPTIONS',
  );
  const lockTimeout = parsed.lockTimeout ?? DEFAULTS.lockTimeout;
  const resolved: ResolvedOptions = {
    ...DEFAULTS,
    environment: currentEnvironment(),
    // These defaults shrink with `lockTimeout`, so that setting it alone is enough.
    sweepInterval: Math.min(DEFAULTS.sweepInterval, lockTimeout / 2),
    heartbeatInterval: Math.min(DEFAULTS.heartbeatInterval, lockTimeout / 3),
    ...parsed,
    retries: Object.freeze({ ...DEFAULTS.retries, ...parsed.retries }),
    retention: Object.freeze({ ...DEFAULTS.retention, ...parsed.retention }),
  };
  const { heartbeatInterval } = resolved;
  if (lockTimeout <= heartbeatInterval) {
    errors.push(
      `options.lockTimeout (${lockTimeout} ms) must be longer than options.heartbeatInterval (${heartbeatInterval} ms)`,
    );
  }
  const { queues = DEFAULTS.queues, queueSettings = {} } = parsed;
  for (const queue of Object.keys(queueSettings)) {
    if (queues.includes(queue)) continue;
    errors.push(
      `options.queueSettings.${queue}: this process does not serve the queue '${queue}'${didYouMean(queue, queues)}: add it to options.queues, or remove its settings`,
    );
  }
  if (errors.length > 0) throw v.validationError('INVALID_OPTIONS', errors);
  return Object.freeze({ ...resolved, queues: Object.freeze([...resolved.queues]) });
}

function isAbsolutePath(value: unknown): value is string {
  return typeof value === 'string' && isAbsolute(value);
}

function isVariableName(value: unknown): boolean {
  return typeof value === 'string' && /^[^\s=,\0]+$/.test(value);
}

function isClock(value: unknown): value is Clock {
  return hasMethods(value, 'now', 'monotonic', 'sleep');
}

function isLogger(value: unknown): value is Logger | false {
  return value === false || hasMethods(value, 'debug', 'info', 'warn', 'error');
}

function hasMethods(value: unknown, ...names: readonly string[]): boolean {
  return isRecord(value) && names.every((name) => typeof value[name] === 'function');
}
