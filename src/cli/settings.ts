import { readFileSync } from 'node:fs';
import { prefixShape, uriWithDatabaseShape } from '../config/connection-options.js';
import { readEnvironment, type WorkerSettings } from '../config/environment.js';
import { ChronosError } from '../domain/errors.js';
import { parse } from '../domain/validation.js';
import type { Arguments } from './arguments.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The option that overrides each environment variable. */
const VARIABLES = {
  HANDLERS: 'handlers',
  QUEUES: 'queues',
  CONCURRENCY: 'concurrency',
  TIMEZONE: 'timezone',
};

/**
 * The environment, overridden by command line options. There is no option for the connection string itself, because
 * everybody on the machine can read the arguments of a process.
 */
export function readSettings(environment: Environment, args: Arguments): WorkerSettings {
  const overrides = Object.entries(args.pickAs(VARIABLES)).map(([name, value]) => [name, String(value)]);
  const file = args.text('uriFile');
  const uri =
    file === undefined
      ? { MONGODB_URI: environment['MONGODB_URI'], MONGODB_URI_FILE: environment['MONGODB_URI_FILE'] }
      : { MONGODB_URI: readUriFile(file), MONGODB_URI_FILE: undefined };
  if (Object.values(uri).every((text) => (text?.trim() ?? '') === '')) {
    throw new ChronosError(
      'INVALID_ENVIRONMENT',
      'MONGODB_URI is missing: set it in the environment or in .env, or name a file that contains it with --uri-file',
    );
  }
  const settings = readEnvironment({
    ...environment,
    ...(args.flag('json') && { LOG_FORMAT: 'json' }),
    ...(Object.fromEntries(overrides) as Environment),
    ...uri,
  });
  // Not through the environment, where an empty variable counts as unset: an empty prefix is allowed.
  const prefix = args.text('prefix');
  if (prefix === undefined) return settings;
  return {
    ...settings,
    options: { ...settings.options, prefix: parse(prefixShape, prefix, '--prefix', 'INVALID_ARGUMENT') },
  };
}

/** Errors do not repeat the content of the file: it may contain a password. */
function readUriFile(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new ChronosError(
      'INVALID_ENVIRONMENT',
      `--uri-file: ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`,
    );
  }
  return parse(uriWithDatabaseShape, text, `--uri-file: the content of ${file}`, 'INVALID_ENVIRONMENT');
}
