import { describeValue } from '../domain/errors.js';
import { isRecord } from '../domain/language.js';
import * as v from '../domain/validation.js';

// How to reach the database. The types are structural, so that nobody needs the packages of a connection they do not use.

export const DEFAULT_PREFIX = 'chronos_';

/** A `MongoClient` of the package `mongodb`, version 7. */
export interface MongoClientLike {
  db(name?: string): unknown;
  connect(): Promise<unknown>;
  close(): Promise<unknown>;
  readonly options: object;
}

/** A connection of mongoose, version 9: `mongoose.connection`, or the result of `mongoose.createConnection()`. */
export interface MongooseConnectionLike {
  getClient(): MongoClientLike;
  asPromise(): Promise<unknown>;
  readonly name: string;
  readonly readyState: number;
}

const SUPPORTED = { mongodb: 7, mongoose: 9 } as const;

/** Says what is wrong with the version of the package that a client or connection comes from. */
export function findVersionError(name: keyof typeof SUPPORTED, version: unknown): string | undefined {
  const needed = SUPPORTED[name];
  if (typeof version === 'string' && Number.parseInt(version, 10) === needed) return undefined;
  // The version of a driver that mongoose uses looks like `7.8.0|9.12.0`.
  const found = typeof version === 'string' ? `version ${version.split('|')[0] ?? ''}` : 'an unknown version';
  return `must come from version ${needed} of the package ${name}, got ${found}: install version ${needed}, or set uri, which works with every version`;
}

/** A promise in version 7 of the driver, an object in earlier versions. Undefined if the client has none. */
export function readDriverMetadata(client: MongoClientLike): unknown {
  return (client.options as { metadata?: unknown }).metadata;
}

export function versionIn(metadata: unknown): unknown {
  const driver = isRecord(metadata) ? metadata['driver'] : undefined;
  return isRecord(driver) ? driver['version'] : undefined;
}

export const uriShape = v.secret(
  'a connection string like mongodb://host:27017/app',
  (value): value is string => typeof value === 'string' && /^mongodb(\+srv)?:\/\/[^/\s]+/.test(value),
);

/** Without the name, the driver would silently use the database `test`. */
export const uriWithDatabaseShape = v.secret(
  "a connection string with the database's name, like mongodb://host:27017/app",
  (value): value is string => typeof value === 'string' && namesDatabase(value),
);

export function namesDatabase(uri: string): boolean {
  return /^mongodb(\+srv)?:\/\/[^/\s]+\/[^?\s]+/.test(uri);
}

export const clientShape = v.custom<MongoClientLike>((value) => {
  const mistaken = findMistakenObject(value, 'client');
  if (mistaken !== undefined) return mistaken;
  if (!hasMethods(value, ['db', 'connect', 'close']) || !isRecord(value['options']))
    return `must be a MongoClient of the package mongodb, got ${describeValue(value)}`;
  const metadata = readDriverMetadata(value as unknown as MongoClientLike);
  // Whether the version in a promise is supported is known when the Scheduler connects.
  const isPromise = hasMethods(metadata, ['then']);
  return isPromise ? undefined : findVersionError('mongodb', versionIn(metadata));
});

export const connectionShape = v.custom<MongooseConnectionLike>((value) => {
  const mistaken = findMistakenObject(value, 'connection');
  if (mistaken !== undefined) return mistaken;
  if (!hasMethods(value, ['getClient', 'asPromise']))
    return `must be a connection of mongoose, got ${describeValue(value)}`;
  const { base } = value;
  return findVersionError('mongoose', isRecord(base) ? base['version'] : undefined);
});

/** MongoDB's rules for names on every operating system; its own databases are excluded. */
export const databaseShape = v.matching<string>(
  'the name of a database: 1 to 63 letters, digits, _ or -, and not admin, config or local',
  (value) =>
    typeof value === 'string' &&
    /^[^\s/\\."$*<>:|?\0]{1,63}$/.test(value) &&
    !['admin', 'config', 'local'].includes(value),
);

/** An empty prefix is allowed: then the collections are called `jobs`, `schedules` and so on. */
export const prefixShape = v.matching<string>(
  "empty, or up to 50 letters, digits, '_', '-' and '.', starting with a letter, a digit or '_' and not with 'system.'",
  (value) =>
    typeof value === 'string' &&
    /^(\w[\w.-]{0,49})?$/.test(value) &&
    !value.includes('..') &&
    !value.startsWith('system.'),
  { type: 'string' },
);

/** Adds an error unless exactly one of `uri`, `client` and `connection` is set and the name of the database is known. */
export function checkConnection(input: unknown, errors: string[]): void {
  if (!isRecord(input)) return;
  const { uri, database } = input;
  const given = ['uri', 'client', 'connection'].filter((key) => input[key] !== undefined);
  if (given.length === 0) {
    errors.push(
      'options.uri is missing: set it to the connection string of MongoDB, or set options.client or options.connection',
    );
  }
  if (given.length > 1) {
    const names = given.map((key) => `options.${key}`).join(' and ');
    errors.push(`${names} are set: set only one of uri, client and connection`);
  }
  const isValidUri = typeof uri === 'string' && uriShape.read(uri, '', []) !== undefined;
  if (isValidUri && database === undefined && !namesDatabase(uri)) {
    errors.push(
      "options.uri must contain the database's name, like mongodb://host:27017/app, or options.database must be set (the value of uri is not shown)",
    );
  }
}

/** A client where a connection is expected, or the other way round, or all of mongoose. */
function findMistakenObject(value: unknown, expected: 'client' | 'connection'): string | undefined {
  if (!isRecord(value)) return undefined;
  if (hasMethods(value, ['createConnection', 'model']))
    return 'is mongoose itself: set connection to mongoose.connection';
  if (expected === 'client' && hasMethods(value, ['getClient', 'asPromise']))
    return 'is a connection of mongoose: pass it as connection';
  if (expected === 'connection' && hasMethods(value, ['db', 'startSession']))
    return 'is a MongoClient: pass it as client';
  return undefined;
}

function hasMethods(value: unknown, names: readonly string[]): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
  );
}
