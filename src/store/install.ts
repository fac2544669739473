import type { Connection } from 'mongoose';
import { openConnection } from './connection.js';

/** Building an index on a large collection takes minutes: this connection has no socket time-out. */
const PATIENT = { serverSelectionTimeoutMS: 10_000, connectTimeoutMS: 10_000, maxPoolSize: 4 } as const;

const NAMESPACE_EXISTS = 48;

/**
 * Creates the collections, their indexes and their validators; what is there already is left as it is. Safe to run
 * from many processes at once. Gives up when the signal is aborted; the server finishes what it has begun.
 */
export async function install(uri: string, signal?: AbortSignal): Promise<void> {
  const connection = await openConnection(uri, PATIENT);
  const giveUp = (): void => void connection.destroy();
  signal?.addEventListener('abort', giveUp);
  try {
    await Promise.all(connection.modelNames().map((name) => installModel(connection, name)));
  } finally {
    signal?.removeEventListener('abort', giveUp);
    await connection.destroy();
  }
}

async function installModel(connection: Connection, name: string): Promise<void> {
  const model = connection.model(name);
  const db = connection.getClient().db(connection.name);
  const validator = { $jsonSchema: model.schema.toJSONSchema({ useBsonType: true }) };
  const [existing] = await db.listCollections({ name: model.collection.name }).toArray();
  if (existing === undefined) {
    await db.createCollection(model.collection.name, { validator }).catch(ignoreExisting);
  } else if (
    JSON.stringify((existing as { options?: { validator?: unknown } }).options?.validator) !==
    JSON.stringify(validator)
  ) {
    await db.command({ collMod: model.collection.name, validator });
  }
  await model.createIndexes();
}

function ignoreExisting(error: unknown): void {
  if ((error as { code?: unknown }).code !== NAMESPACE_EXISTS) throw error;
}
