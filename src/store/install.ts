import type { Connection, mongo } from 'mongoose';
import { ChronosError, toError } from '../domain/errors.js';
import { openConnection } from './connection.js';
import { compareIndexes } from './inspect.js';
import { unreachable } from './unreachable.js';
import { validatorFor, wholeSchema } from './validators.js';

/** Building an index on a large collection takes minutes: this connection has no socket time-out. */
const PATIENT = { serverSelectionTimeoutMS: 10_000, connectTimeoutMS: 10_000, maxPoolSize: 4 } as const;

const UNAUTHORIZED = 13;
const NAMESPACE_EXISTS = 48;

/**
 * Creates the collections, their indexes and their validators; what is there already is left as it is. Safe to run
 * from many processes at once. Gives up when the signal is aborted; the server finishes what it has begun.
 */
export async function install(uri: string, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const connection = await openConnection(uri, PATIENT).catch((error: unknown) => {
    throw unreachable(toError(error), 1);
  });
  const giveUp = (): void => void connection.destroy();
  signal?.addEventListener('abort', giveUp);
  try {
    signal?.throwIfAborted();
    await Promise.all(connection.modelNames().map((name) => installModel(connection, name))).catch(
      explainRefusal,
    );
  } finally {
    signal?.removeEventListener('abort', giveUp);
    await connection.destroy();
  }
}

async function installModel(connection: Connection, name: string): Promise<void> {
  const model = connection.model(name);
  const db = connection.getClient().db(connection.name);
  const $jsonSchema = validatorFor(name, model.schema);
  const collection = db.collection(model.collection.name);
  const [existing] = await db.listCollections({ name: collection.collectionName }).toArray();
  const validator = (
    existing as { options?: { validator?: { $jsonSchema?: { title?: string } } } } | undefined
  )?.options?.validator;
  if (existing === undefined) {
    await db
      .createCollection(collection.collectionName, { validator: { $jsonSchema } })
      .catch(ignoreExisting);
  } else if (JSON.stringify(validator) !== JSON.stringify({ $jsonSchema })) {
    const ours = validator?.$jsonSchema?.title?.startsWith('Chronos ') === true;
    if (!ours) await refuseForeign(collection, wholeSchema(name, model.schema));
    await db.command({ collMod: collection.collectionName, validator: { $jsonSchema } });
  }
  const { missing, different } = compareIndexes(model.schema, await collection.indexes());
  // Asking for indexes that are there needs the right to make them, which a worker need not have.
  if (missing.length + different.length > 0) await model.createIndexes();
}

/** Whoever may not install can still work once somebody else has. */
function explainRefusal(error: unknown): never {
  if ((error as { code?: unknown }).code !== UNAUTHORIZED) throw error;
  throw new ChronosError(
    'NOT_INSTALLED',
    `the database user may not make the collections and indexes that are missing or out of date: ${toError(error).message}. ` +
      'Run install once as a user who may (docs/operations.md lists the rights), then start the workers.',
    { cause: error },
  );
}

function ignoreExisting(error: unknown): void {
  if ((error as { code?: unknown }).code !== NAMESPACE_EXISTS) throw error;
}

/** Somebody else's collection of the same name: pruning would delete its documents, the validator refuse new ones. */
async function refuseForeign(collection: mongo.Collection, $jsonSchema: object): Promise<void> {
  const foreign = await collection.findOne({ $nor: [{ $jsonSchema }] }, { projection: { _id: 1 } });
  if (foreign === null) return;
  throw new ChronosError(
    'COLLECTION_TAKEN',
    `the collection '${collection.namespace}' holds documents that Chronos did not write: give Chronos a database of its own in its connection string`,
  );
}
