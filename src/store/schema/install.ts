import { setMaxListeners } from 'node:events';
import type { mongo, Schema } from 'mongoose';
import { ChronosError, toError } from '../../domain/errors.js';
import { retry } from '../../runtime/retry.js';
import { systemClock } from '../../runtime/system-clock.js';
import {
  type DatabaseSource,
  openGivenClient,
  type OpenClient,
  openOwnClient,
  operationDeadlines,
} from '../connection.js';
import { toConnectionError } from '../mongo-errors.js';
import { type CollectionName, type Collections, openCollections, openDb, SCHEMAS } from './collections.js';
import { assertSupported, storeInstallation } from './installation.js';
import { compareIndexes, fullSchema, inspectServer, validatorFor } from './inspect.js';

/** Also how long a socket may stay open after `close()` while its server does not reply: the driver cannot cancel a handshake. */
const CONNECT_TIMEOUT_MS = 5000;

/** No socket timeout: building an index on a large collection takes minutes. */
const INSTALL_OPTIONS = {
  serverSelectionTimeoutMS: CONNECT_TIMEOUT_MS,
  connectTimeoutMS: CONNECT_TIMEOUT_MS,
  maxPoolSize: 4,
} as const;

/** The limit for each command except index builds. Generous, because looking for foreign documents reads a whole collection. */
const MAX_COMMAND_MS = 60_000;

/** The driver adds no write concern to commands. */
const MAJORITY = { w: 'majority' } as const;

/**
 * MongoDB's error codes for what passes when another installer is done: an operation that conflicts with one in progress,
 * an index build in progress, and one that was aborted by another.
 */
const CONFLICTS: ReadonlySet<unknown> = new Set([112, 117, 276, 12_587]);
const CONFLICT_RETRY = { first: 100, max: 2000 };
/** Building an index on a large collection takes minutes. */
const MAX_CONFLICT_MS = 600_000;

const UNAUTHORIZED = 13;
const NAMESPACE_EXISTS = 48;

/** MongoDB's error codes of shardCollection: the collection has documents, but no index for the key … */
const NO_SHARD_KEY_INDEX = 72;
/** … or it is sharded by another key. */
const OTHER_SHARD_KEY = 23;

/** The collections that grow with the number of jobs. The others stay on one shard. */
const SHARDED = ['jobs', 'executions'] as const satisfies CollectionName[];
/** Spreads jobs evenly, however their ids are made, and keeps ids unique: MongoDB checks other unique fields only per shard. */
const SHARD_KEY = { _id: 'hashed' } as const;

interface InstallRequest {
  signal?: AbortSignal;
  /** Also shard the collections that grow; needs a connection to mongos. */
  shard?: boolean;
  /** Another process installs at the same time, and this one tries again. */
  onRetry?: (error: unknown, failures: number, retryIn: number) => void;
}

/**
 * Creates missing collections, indexes and validators, and stores their version. Several processes may run it at the same time. Stops when the
 * signal is aborted; the server still finishes an index build in progress.
 *
 * With a connection string it uses its own client, because that of a worker has short timeouts. The application's client
 * is used directly: whatever its options are, they work, and an index build has no other time limit than the client's
 * own, which is none by default.
 */
export async function install(source: DatabaseSource, request: InstallRequest = {}): Promise<void> {
  const { signal, shard = false, onRetry = () => undefined } = request;
  // A signal of its own, because each operation in progress listens to it.
  const stopped = signal === undefined ? new AbortController().signal : AbortSignal.any([signal]);
  setMaxListeners(0, stopped);
  stopped.throwIfAborted();
  const { client, database, close } = await openClient(source, stopped);
  try {
    const limit = operationDeadlines(MAX_COMMAND_MS);
    const signal = (method: string): AbortSignal =>
      method === 'createIndexes' ? stopped : AbortSignal.any([stopped, limit()]);
    const c = openCollections({ client, database, prefix: source.prefix, signal });
    await assertSupported(c);
    if (shard) await assertMongos(c);
    const installed = Object.entries(SCHEMAS).map(([model, { name, schema }]) =>
      retryConflicts(stopped, onRetry, () =>
        installCollection(c.db, c[name] as unknown as mongo.Collection, model, schema),
      ),
    );
    await Promise.all(installed).catch(explainMissingRights);
    if (shard) {
      const admin = openDb({ client, database: 'admin', signal });
      for (const name of SHARDED) await shardCollection(admin, c[name] as unknown as mongo.Collection);
    }
    await storeInstallation(c).catch(explainMissingRights);
  } finally {
    await close();
  }
}

/** Several processes often start together on a new database. */
function retryConflicts(
  signal: AbortSignal,
  onRetry: NonNullable<InstallRequest['onRetry']>,
  work: () => Promise<void>,
): Promise<void> {
  const end = systemClock.monotonic() + MAX_CONFLICT_MS;
  return retry(work, {
    ...CONFLICT_RETRY,
    clock: systemClock,
    signal,
    shouldRetry: (error) =>
      CONFLICTS.has((error as { code?: unknown }).code) && systemClock.monotonic() < end,
    onRetry,
  });
}

async function openClient(source: DatabaseSource, signal: AbortSignal): Promise<OpenClient> {
  try {
    return source.uri === undefined
      ? await openGivenClient(source, CONNECT_TIMEOUT_MS, signal)
      : await openOwnClient(source.uri, source.database, INSTALL_OPTIONS, signal);
  } catch (error) {
    throw error instanceof ChronosError ? error : toConnectionError(toError(error), 1);
  }
}

interface ExistingCollection {
  options?: { validator?: { $jsonSchema?: { title?: string } } };
}

async function installCollection(
  db: mongo.Db,
  collection: mongo.Collection,
  model: string,
  schema: Schema,
): Promise<void> {
  const { collectionName } = collection;
  const $jsonSchema = validatorFor(model, schema);
  const [existing] = await db.listCollections({ name: collectionName }).toArray();
  const validator = (existing as ExistingCollection | undefined)?.options?.validator;
  if (existing === undefined) {
    const create = { create: collectionName, validator: { $jsonSchema }, writeConcern: MAJORITY };
    await db.command(create).catch(ignoreExisting);
  } else if (JSON.stringify(validator) !== JSON.stringify({ $jsonSchema })) {
    const isOurs = validator?.$jsonSchema?.title?.startsWith('Chronos ') === true;
    if (!isOurs) await assertOwnCollection(collection, fullSchema(model, schema));
    await db.command({ collMod: collectionName, validator: { $jsonSchema }, writeConcern: MAJORITY });
  }
  const { missing, different } = compareIndexes(schema, await collection.indexes());
  // createIndexes() requires rights that a worker may not have, even if all indexes exist. The server rejects a different
  // index with the same name: that must not keep it from creating the missing ones.
  for (const names of [missing, different]) {
    if (names.length > 0) await collection.createIndexes(indexesOf(schema, names));
  }
}

async function assertMongos(c: Collections): Promise<void> {
  const { topology } = await inspectServer(c);
  if (topology === 'sharded') return;
  const found = topology === 'standalone' ? 'a standalone server' : 'a replica set';
  throw new ChronosError(
    'INVALID_ARGUMENT',
    `shard needs a connection to mongos of a sharded cluster, got one to ${found}: install without shard, or connect to mongos`,
  );
}

/** Does nothing if the collection is sharded already. Documents that it contains are distributed by the balancer, later. */
async function shardCollection(admin: mongo.Db, collection: mongo.Collection): Promise<void> {
  const command = { shardCollection: collection.namespace, key: SHARD_KEY };
  try {
    await admin.command(command).catch(async (error: unknown) => {
      if ((error as { code?: unknown }).code !== NO_SHARD_KEY_INDEX) throw error;
      await collection.createIndexes([{ key: SHARD_KEY }]);
      await admin.command(command);
    });
  } catch (error) {
    const reason = toError(error).message;
    const { code } = error as { code?: unknown };
    if (code === OTHER_SHARD_KEY) {
      throw new ChronosError(
        'NOT_INSTALLED',
        `'${collection.namespace}' is already sharded by a key other than { _id: "hashed" }: ${reason}. Change the key with reshardCollection, or install without shard.`,
        { cause: error },
      );
    }
    if (code !== UNAUTHORIZED) throw error;
    throw new ChronosError(
      'NOT_INSTALLED',
      `the database user may not shard '${collection.namespace}': ${reason}. Grant the action enableSharding on the database (docs/operations.md), or install without shard.`,
      { cause: error },
    );
  }
}

function indexesOf(schema: Schema, names: readonly string[]): mongo.IndexDescription[] {
  return schema
    .indexes()
    .map(([key, options]) => ({ key, ...options }) as mongo.IndexDescription)
    .filter(({ name = '' }) => names.includes(name));
}

function explainMissingRights(error: unknown): never {
  if ((error as { code?: unknown }).code !== UNAUTHORIZED) throw error;
  throw new ChronosError(
    'NOT_INSTALLED',
    `the database user may not create the collections and indexes that are missing or out of date: ${toError(error).message}. ` +
      'Run install once as a user with the necessary rights (docs/operations.md lists them), then start the workers.',
    { cause: error },
  );
}

function ignoreExisting(error: unknown): void {
  if ((error as { code?: unknown }).code !== NAMESPACE_EXISTS) throw error;
}

/** In another program's collection, pruning would delete documents and the validator would reject new ones. */
async function assertOwnCollection(collection: mongo.Collection, $jsonSchema: object): Promise<void> {
  const foreign = await collection.findOne({ $nor: [{ $jsonSchema }] }, { projection: { _id: 1 } });
  if (foreign === null) return;
  throw new ChronosError(
    'COLLECTION_TAKEN',
    `the collection '${collection.namespace}' contains documents that Chronos did not write: choose another prefix for the collections of Chronos (option prefix, PREFIX), or use a separate database`,
  );
}
