import type { Connection, mongo } from 'mongoose';
import { ChronosError, toError } from '../../domain/errors.js';
import { openConnection } from '../connection.js';
import { toConnectionError } from '../mongo-errors.js';
import { compareIndexes, validatorFor, fullSchema } from './inspect.js';

/** No socket timeout: building an index on a large collection takes minutes. */
const INSTALL_OPTIONS = {
  serverSelectionTimeoutMS: 10_000,
  connectTimeoutMS: 10_000,
  maxPoolSize: 4,
} as const;

const UNAUTHORIZED = 13;
const NAMESPACE_EXISTS = 48;

/**
 * Creates missing collections, indexes and validators. Several processes may run it at the same time. Stops when the
 * signal is aborted; the server still finishes an index build in progress.
 */
export async function install(uri: string, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const connection = await openConnection(uri, INSTALL_OPTIONS).catch((error: unknown) => {
    throw toConnectionError(toError(error), 1);
  });
  const abort = (): void => void connection.destroy();
  signal?.addEventListener('abort', abort);
  try {
    signal?.throwIfAborted();
    const models = connection.modelNames().map((name) => installModel(connection, name));
    await Promise.all(models).catch(explainMissingRights);
  } finally {
    signal?.removeEventListener('abort', abort);
    await connection.destroy();
  }
}

interface ExistingCollection {
  options?: { validator?: { $jsonSchema?: { title?: string } } };
}

async function installModel(connection: Connection, name: string): Promise<void> {
  const model = connection.model(name);
  const db = connection.getClient().db(connection.name);
  const $jsonSchema = validatorFor(name, model.schema);
  const collection = db.collection(model.collection.name);
  const [existing] = await db.listCollections({ name: collection.collectionName }).toArray();
  const validator = (existing as ExistingCollection | undefined)?.options?.validator;
  if (existing === undefined) {
    await db
      .createCollection(collection.collectionName, { validator: { $jsonSchema } })
      .catch(ignoreExisting);
  } else if (JSON.stringify(validator) !== JSON.stringify({ $jsonSchema })) {
    const isOurs = validator?.$jsonSchema?.title?.startsWith('Chronos ') === true;
    if (!isOurs) await assertOwnCollection(collection, fullSchema(name, model.schema));
    await db.command({ collMod: collection.collectionName, validator: { $jsonSchema } });
  }
  const { missing, different } = compareIndexes(model.schema, await collection.indexes());
  // createIndexes() requires rights that a worker may not have, even if all indexes exist.
  if (missing.length + different.length > 0) await model.createIndexes();
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
    `the collection '${collection.namespace}' contains documents that Chronos did not write: use a separate database for Chronos in the connection string`,
  );
}
