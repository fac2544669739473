import { readFileSync } from 'node:fs';
import * as v from '../domain/validation.js';
import { uriWithDatabaseShape } from './connection-options.js';
import { findExposures, type HttpOptions, httpShapes } from './http-options.js';
import { type DaemonOptions, daemonShapes } from './method-options.js';
import { optionShapes, type SchedulerOptions } from './options.js';
import type { Environment } from './process-env.js';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** The configuration of a worker process: the Scheduler's options, and what only the process needs. */
export interface WorkerSettings {
  options: SchedulerOptions;
  /** Module to load handlers from. */
  handlers: string | undefined;
  logLevel: (typeof LOG_LEVELS)[number];
  daemon: DaemonOptions;
  /** Undefined: `pretty` on a terminal, otherwise `json`. */
  logFormat: 'pretty' | 'json' | undefined;
  /** Undefined: no HTTP server. */
  http: HttpOptions | undefined;
}

/** Also read from the file that `<variable>_FILE` names. */
const SECRETS = ['MONGODB_URI', 'HTTP_TOKEN', 'HTTP_READ_TOKEN'] as const;

// Which variable sets which option.
const OPTION_VARIABLES = {
  prefix: 'PREFIX',
  concurrency: 'CONCURRENCY',
  pollInterval: 'POLL_INTERVAL',
  lockTimeout: 'LOCK_TIMEOUT',
  shutdownGrace: 'SHUTDOWN_GRACE',
  connectTimeout: 'CONNECT_TIMEOUT',
  queues: 'QUEUES',
  timezone: 'TIMEZONE',
  workerId: 'WORKER_ID',
  shellFiles: 'SHELL_FILES',
  shellInheritEnv: 'SHELL_INHERIT_ENV',
  shellPayloadEnv: 'SHELL_PAYLOAD_ENV',
  urlHosts: 'URL_HOSTS',
};
const DAEMON_VARIABLES = { interval: 'TICK_INTERVAL', maxOverruns: 'MAX_OVERRUNS' };
const HTTP_VARIABLES = {
  port: 'HTTP_PORT',
  host: 'HTTP_HOST',
  token: 'HTTP_TOKEN',
  readToken: 'HTTP_READ_TOKEN',
};

/** Reads the environment of a worker process. Throws one error that lists every problem. */
export function readEnvironment(environment: Environment): WorkerSettings {
  const errors: string[] = [];
  const variables = withSecretFiles(environment, SECRETS, errors);
  /** An empty variable counts as unset: `CONCURRENCY= npm start` must not mean zero. */
  const read = <T>(variable: string, shape: v.Shape<T>): T | undefined => {
    const text = variables[variable]?.trim() ?? '';
    return text === '' ? undefined : v.fromText(shape).read(text, variable, errors);
  };
  /** Options whose variable is unset are absent. */
  const readAll = <K extends string, S extends Record<K, v.Shape<unknown>>>(
    names: Record<K, string>,
    shapes: S,
  ) => {
    const values = Object.entries<string>(names).map(([key, name]) => [key, read(name, shapes[key as K])]);
    return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as {
      [P in K]?: S[P] extends v.Shape<infer T> ? T : never;
    };
  };

  const uri = read('MONGODB_URI', uriWithDatabaseShape) ?? '';
  if (uri === '' && errors.length === 0) {
    errors.push(
      'MONGODB_URI is missing: set it to the connection string of MongoDB, or use `npm start`, which starts its own server',
    );
  }
  const options = readAll(OPTION_VARIABLES, optionShapes);
  const daemon = readAll(DAEMON_VARIABLES, daemonShapes);
  const { port, ...http } = readAll(HTTP_VARIABLES, httpShapes);
  const settings = {
    handlers: read('HANDLERS', v.text()),
    logLevel: read('LOG_LEVEL', v.oneOf(...LOG_LEVELS)) ?? 'info',
    logFormat: read('LOG_FORMAT', v.oneOf('pretty', 'json')),
    http: port === undefined ? undefined : { port, ...http },
  };
  // Only if everything else is valid: otherwise a malformed token would also be reported as missing.
  if (errors.length === 0 && port !== undefined) errors.push(...findExposures(http, HTTP_VARIABLES));
  if (errors.length > 0) throw v.validationError('INVALID_ENVIRONMENT', errors);
  return { ...settings, options: { uri, ...options }, daemon };
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
    // The path is not shown: the variable may have been set to the secret itself by mistake.
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    errors.push(`${variable} names a file that cannot be read: ${code}`);
    return '';
  }
}
