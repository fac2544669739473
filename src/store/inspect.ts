import { createRequire } from 'node:module';
import type { Schema } from 'mongoose';
import { MOST_TIME } from './bounded.js';
import { SCHEMAS, type Collections } from './models.js';
import { EXPIRY_INDEX } from './schema-parts.js';
import { validatorFor } from './validators.js';

/** How a collection differs from what install makes. */
export interface CollectionState {
  collection: string;
  exists: boolean;
  missing: string[];
  different: string[];
  /** Indexes that are not Chronos's own. */
  foreign: string[];
  /** The index by which the server removes what has expired is missing or different. */
  growsWithoutEnd: boolean;
  hasValidator: boolean;
}

interface IndexFacts {
  name?: string;
  key?: object;
  partialFilterExpression?: object;
  expireAfterSeconds?: number;
  sparse?: boolean;
  unique?: boolean;
}

/** Compares what is there with what install makes. Writes nothing. */
export async function inspectCollections(c: Collections): Promise<CollectionState[]> {
  const { db } = c.jobs;
  const existing = await db.listCollections({}, { maxTimeMS: MOST_TIME }).toArray();
  return Promise.all(
    Object.entries(SCHEMAS).map(async ([model, schema]) => {
      const collection = String(schema.get('collection'));
      const found = existing.find(({ name }) => name === collection) as
        { options?: { validator?: object } } | undefined;
      const indexes: IndexFacts[] =
        found === undefined ? [] : await db.collection(collection).indexes({ maxTimeMS: MOST_TIME });
      const { missing, different, foreign } = compareIndexes(schema, indexes);
      return {
        collection,
        exists: found !== undefined,
        ...{ missing, different, foreign },
        growsWithoutEnd: [...missing, ...different].includes(EXPIRY_INDEX),
        hasValidator:
          JSON.stringify(found?.options?.validator) ===
          JSON.stringify({ $jsonSchema: validatorFor(model, schema) }),
      };
    }),
  );
}

/** The names of the indexes that a schema wants and that are not there or differ, and of those it does not know. */
export function compareIndexes(
  schema: Pick<Schema, 'indexes'>,
  indexes: readonly IndexFacts[],
): Pick<CollectionState, 'missing' | 'different' | 'foreign'> {
  const wanted = schema.indexes().map(([key, options]) => ({ ...options, key }) as IndexFacts);
  const byName = new Map(indexes.map((index) => [index.name, index]));
  const own = new Set(['_id_', ...wanted.map(nameOf)]);
  return {
    missing: wanted.filter(({ name }) => !byName.has(name)).map(nameOf),
    different: wanted
      .filter((index) => byName.has(index.name) && essence(index) !== essence(byName.get(index.name)))
      .map(nameOf),
    foreign: indexes.map(nameOf).filter((name) => !own.has(name)),
  };
}

function nameOf({ name }: IndexFacts): string {
  return name ?? '';
}

function essence(index: IndexFacts | undefined): string {
  const { key, partialFilterExpression = null, expireAfterSeconds = null, sparse, unique } = index ?? {};
  return JSON.stringify([key, partialFilterExpression, expireAfterSeconds, sparse === true, unique === true]);
}

export interface ServerFacts {
  version: string;
  /** Of MongoDB's driver for Node. */
  driver: string;
  /** A single server, a replica set, or the router of a sharded cluster. */
  topology: 'standalone' | 'replicaSet' | 'sharded';
  /** Members that have data, and those that only vote. */
  members: number;
  arbiters: number;
  writeConcern: { w: string | number | null; journal: boolean };
  localTime: Date;
}

export async function inspectServer(c: Collections): Promise<ServerFacts> {
  const { db } = c.jobs;
  const limit = { maxTimeMS: MOST_TIME };
  const [build, hello] = await Promise.all([
    db.admin().command({ buildInfo: 1, ...limit }),
    db.admin().command({ hello: 1, ...limit }),
  ]);
  const { w, journal } = c.jobs.writeConcern ?? {};
  return {
    version: String(build['version']),
    driver: driverVersion(),
    topology:
      hello['msg'] === 'isdbgrid' ? 'sharded' : hello['setName'] === undefined ? 'standalone' : 'replicaSet',
    members: Array.isArray(hello['hosts']) ? hello['hosts'].length : 1,
    arbiters: Array.isArray(hello['arbiters']) ? hello['arbiters'].length : 0,
    writeConcern: { w: w ?? null, journal: journal === true },
    localTime: hello['localTime'] as Date,
  };
}

/** Why no change stream can be opened as workers do, on the database; null when one can. */
export async function refusedStream(c: Collections): Promise<string | null> {
  const stream = c.jobs.db.runCursorCommand(
    { aggregate: 1, pipeline: [{ $changeStream: {} }], cursor: {}, readConcern: { level: 'majority' } },
    { readPreference: 'primary' },
  );
  try {
    await stream.setMaxTimeMS(1).tryNext();
    return null;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await stream.close();
  }
}

/** The driver says its version to servers only; the one that mongoose brings need not be the one next to this package. */
function driverVersion(): string {
  const ofMongoose = createRequire(createRequire(import.meta.url).resolve('mongoose'));
  return (ofMongoose('mongodb/package.json') as { version: string }).version;
}
