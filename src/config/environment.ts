import { readFileSync } from 'node:fs';
import { fromText, matching, oneOf, type Shape, validationError } from '../domain/validation.js';
import { findExposures, type HttpOptions, httpShapes } from './http-options.js';
import { type DaemonOptions, daemonShapes } from './method-options.js';
import { optionShapes, type SchedulerOptions } from './options.js';
import type { Environment } from './process-env.js';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The configuration of a worker process: the Scheduler's options, and what only the process needs. */
export interface WorkerSettings {
  options: SchedulerOptions;
  /** Module to load handlers from. */
  handlers: string | undefined;
  logLevel: LogLevel;
  /** How `daemon` ticks. */
  daemon: DaemonOptions;
  /** `pretty` on a terminal, `json` otherwise, unless set. */
  logFormat: 'pretty' | 'json' | undefined;
  /** Undefined: no HTTP server. */
  http: HttpOptions | undefined;
}

/** Also read from the file that `<variable>_FILE` names. */
const SECRETS = ['MONGODB_URI', 'HTTP_TOKEN', 'HTTP_READ_TOKEN'] as const;

/** Reads the environment of a worker process. Throws one error that lists every problem. */
export function readEnvironment(environment: Environment): WorkerSettings {
  const errors: string[] = [];
  const variables = withSecretFiles(environment, SECRETS, errors);
  /** An empty variable counts as absent: `CONCURRENCY= npm start` must not mean zero. */
  const read = <T>(variable: string, shape: Shape<T>): T | undefined => {
    const text = variables[variable]?.trim() ?? '';
    return text === '' ? undefined : fromText(shape).read(text, variable, errors);
  };

  const uri = read('MONGODB_URI', optionShapes.uri) ?? '';
  if (uri === '' && errors.length === 0) {
    errors.push(
      'MONGODB_URI is missing: set it to the connection string of MongoDB, or use `npm start`, which brings its own server',
    );
  }
  const options = {
    concurrency: read('CONCURRENCY', optionShapes.concurrency),
    pollInterval: read('POLL_INTERVAL', optionShapes.pollInterval),
    lockTimeout: read('LOCK_TIMEOUT', optionShapes.lockTimeout),
    shutdownGrace: read('SHUTDOWN_GRACE', optionShapes.shutdownGrace),
    connectTimeout: read('CONNECT_TIMEOUT', optionShapes.connectTimeout),
    queues: read('QUEUES', optionShapes.queues),
    timezone: read('TIMEZONE', optionShapes.timezone),
    workerId: read('WORKER_ID', optionShapes.workerId),
    shellFiles: read('SHELL_FILES', optionShapes.shellFiles),
    urlHosts: read('URL_HOSTS', optionShapes.urlHosts),
  };
  const daemon = {
    interval: read('TICK_INTERVAL', daemonShapes.interval),
    maxOverruns: read('MAX_OVERRUNS', daemonShapes.maxOverruns),
  };
  const http = {
    port: read('HTTP_PORT', httpShapes.port),
    ...withoutUndefined({
      host: read('HTTP_HOST', httpShapes.host),
      token: read('HTTP_TOKEN', httpShapes.token),
      readToken: read('HTTP_READ_TOKEN', httpShapes.readToken),
    }),
  };
  const settings = {
    handlers: read('HANDLERS', matching('the path of a module', isString)),
    logLevel: read('LOG_LEVEL', oneOf(...LOG_LEVELS)) ?? 'info',
    logFormat: read('LOG_FORMAT', oneOf('pretty', 'json')),
    http: isListening(http) ? http : undefined,
  };
  // Only if everything else is right: a malformed token is not a missing one.
  if (errors.length === 0 && settings.http !== undefined) errors.push(...findExposures(http, HTTP_VARIABLES));
  if (errors.length > 0) throw validationError('INVALID_ENVIRONMENT', errors);
  return { ...settings, options: { uri, ...withoutUndefined(options) }, daemon: withoutUndefined(daemon) };
}

const HTTP_VARIABLES = { host: 'HTTP_HOST', token: 'HTTP_TOKEN', readToken: 'HTTP_READ_TOKEN' };

/** Without HTTP_PORT nothing listens. */
function isListening<T extends { port: number | undefined }>(http: T): http is T & { port: number } {
  return http.port !== undefined;
}

function withoutUndefined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

/**
 * Reads the secrets that `<variable>_FILE` points to. Docker, Kubernetes and systemd pass secrets in files, and programs
 * that handlers start cannot see them there.
 */
export function withSecretFiles(
  environment: Environment,
  variables: readonly string[],
  errors: string[],
): Environment {
  const read = { ...environment };
  for (const variable of variables) {
    const path = environment[`${variable}_FILE`]?.trim() ?? '';
    if (path === '') continue;
    if ((environment[variable]?.trim() ?? '') !== '')
      errors.push(`${variable} and ${variable}_FILE are both set: set one of them`);
    else read[variable] = readSecretFile(path, `${variable}_FILE`, errors);
  }
  return read;
}

function readSecretFile(path: string, variable: string, errors: string[]): string {
  try {
    const content = readFileSync(path, 'utf8').trim();
    if (content === '') errors.push(`${variable} names a file that is empty`);
    return content;
  } catch (error) {
    // Without the path: somebody may have set the variable to the secret itself.
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    errors.push(`${variable} names a file that cannot be read: ${code}`);
    return '';
  }
}
