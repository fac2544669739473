import { readFileSync } from 'node:fs';
import { readEnvironment, type WorkerSettings } from '../config/environment.js';
import { isMongoUri, MONGO_URI } from '../config/mongo-uri.js';
import { ChronosError } from '../domain/errors.js';
import type { Given } from './given.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Options of the command line that stand for a variable of the environment. */
const VARIABLES = {
  handlers: 'HANDLERS',
  queues: 'QUEUES',
  concurrency: 'CONCURRENCY',
  timezone: 'TIMEZONE',
} as const;

/**
 * What the environment says, and the command line over it. The connection string comes from MONGODB_URI, MONGODB_URI_FILE or --uri-file:
 * an argument would be seen by everybody in the list of processes.
 */
export function readSettings(environment: Environment, given: Given): WorkerSettings {
  const overrides = Object.entries(VARIABLES).flatMap(([option, variable]) => {
    const value = given.text(option) ?? given.number(option) ?? given.list(option)?.join(',');
    return value === undefined ? [] : [[variable, String(value)] as const];
  });
  const file = given.text('uriFile');
  // What the command line names stands for both variables.
  const uri =
    file === undefined
      ? { MONGODB_URI: environment['MONGODB_URI'], MONGODB_URI_FILE: environment['MONGODB_URI_FILE'] }
      : { MONGODB_URI: uriIn(file), MONGODB_URI_FILE: undefined };
  if (Object.values(uri).every((text) => (text?.trim() ?? '') === '')) {
    throw new ChronosError(
      'INVALID_ENVIRONMENT',
      'MONGODB_URI is missing: set it, in the environment or in .env, to the connection string of MongoDB, or name a file that has it with --uri-file',
    );
  }
  const format = given.flag('json') ? { LOG_FORMAT: 'json' } : {};
  return readEnvironment({
    ...environment,
    ...format,
    ...Object.fromEntries(overrides),
    ...uri,
  });
}

/** Nothing of the file is repeated in an error. */
function uriIn(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new ChronosError(
      'INVALID_ENVIRONMENT',
      `--uri-file: ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`,
    );
  }
  if (isMongoUri(text)) return text;
  throw new ChronosError(
    'INVALID_ENVIRONMENT',
    `--uri-file: ${file} must have nothing in it but ${MONGO_URI}`,
  );
}
