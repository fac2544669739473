import { setMaxListeners } from 'node:events';
import type { mongo, Schema } from 'mongoose';
import { ChronosError, toError } from '../../domain/errors.js';
import { type DatabaseSource, openGivenClient, type OpenClient, openOwnClient } from '../connection.js';
import { toConnectionError } from '../mongo-errors.js';
import { openCollections, SCHEMAS } from './collections.js';
import { compareIndexes, fullSchema, validatorFor } from './inspect.js';

const CONNECT_TIMEOUT_MS = 10_000;

/** No socket timeout: building an index on a large collection takes minutes. */
const INSTALL_OPTIONS = {
  serverSelectionTimeoutMS: CONNECT_TIMEOUT_MS,
  connectTimeoutMS: CONNECT_TIMEOUT_MS,
  maxPoolSize: 4,
} as const;

/** The driver adds no write concern to commands. */
const MAJORITY = { w: 'majority' } as const;

const UNAUTHORIZED = 13;
const NAMESPACE_EXISTS = 48;

/**
 * Creates missing collections, indexes and validators. Several processes may run it at the same time. Stops when the
 * signal is aborted; the server still finishes an index build in progress.
 *
 * With a connection string it uses its own client, because that of a worker has short timeouts. The application's client
 * is used directly: whatever its options are, they work, and an index build has no other time limit than the client's
 * own, which is none by default.
 */
export async function install(source: DatabaseSource, signal?: AbortSignal): Promise<void> {
  // A signal of its own, because each operation in progress listens to it.
  const stopped = signal === undefined ? new AbortController().signal : AbortSignal.any([signal]);
  setMaxListeners(0, stopped);
  stopped.throwIfAborted();
  const { client, database, close } = await openClient(source, stopped);
  try {
    const c = openCollections({ client, database, prefix: source.prefix, signal: () => stopped });
    const installed = Object.entries(SCHEMAS).map(([model, { name, schema }]) =>
      installCollection(c.db, c[name] as unknown as mongo.Collection, model, schema),
    );
    await Promise.all(installed).catch(explainMissingRights);
  } finally {
    await close();
  }
}

async function openClient(source: DatabaseSource, signal: AbortSignal): Promise<OpenClient> {
  try {
    return source.uri === undefined
      ? await openGivenClient(source, CONNECT_TIMEOUT_MS, signal)
      : await openOwnClient(source.uri, source.database, INSTALL_OPTIONS);
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
