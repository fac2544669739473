import { createRequire } from 'node:module';
import type { Schema } from 'mongoose';
import { MAX_QUERY_MS } from '../query-limits.js';
import { type Collections, SCHEMAS } from './collections.js';
import { EXPIRY_INDEX } from './fields.js';

/** How a collection differs from what `install` creates. */
export interface CollectionState {
  collection: string;
  exists: boolean;
  missing: string[];
  different: string[];
  /** Indexes that Chronos did not create. */
  foreign: string[];
  /** The TTL index is missing or different. */
  lacksTtlIndex: boolean;
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

/** Compares the installed collections with the expected ones. Writes nothing. */
export async function inspectCollections(c: Collections): Promise<CollectionState[]> {
  const existing = await c.db.listCollections({}, { maxTimeMS: MAX_QUERY_MS }).toArray();
  return Promise.all(
    Object.entries(SCHEMAS).map(async ([model, { name, schema }]) => {
      const collection = c[name].collectionName;
      const found = existing.find((one) => one.name === collection) as
        { options?: { validator?: object } } | undefined;
      const indexes: IndexFacts[] =
        found === undefined ? [] : await c[name].indexes({ maxTimeMS: MAX_QUERY_MS });
      const { missing, different, foreign } = compareIndexes(schema, indexes);
      return {
        collection,
        exists: found !== undefined,
        ...{ missing, different, foreign },
        lacksTtlIndex: [...missing, ...different].includes(EXPIRY_INDEX),
        hasValidator:
          JSON.stringify(found?.options?.validator) ===
          JSON.stringify({ $jsonSchema: validatorFor(model, schema) }),
      };
    }),
  );
}

/** Compares the indexes of a schema with the installed ones. Returns index names. */
export function compareIndexes(
  schema: Pick<Schema, 'indexes'>,
  indexes: readonly IndexFacts[],
): Pick<CollectionState, 'missing' | 'different' | 'foreign'> {
  const expected = schema.indexes().map(([key, options]) => ({ ...options, key }) as IndexFacts);
  const byName = new Map(indexes.map((index) => [index.name, index]));
  const own = new Set(['_id_', ...expected.map(nameOf)]);
  return {
    missing: expected.filter(({ name }) => !byName.has(name)).map(nameOf),
    different: expected
      .filter(
        (index) => byName.has(index.name) && describeIndex(index) !== describeIndex(byName.get(index.name)),
      )
      .map(nameOf),
    foreign: indexes.filter((index) => !own.has(nameOf(index)) && !isShardKey(index)).map(nameOf),
  };
}

/** The index that MongoDB needs for a collection that is sharded by its hashed ids. */
function isShardKey({ key }: IndexFacts): boolean {
  return JSON.stringify(key) === '{"_id":"hashed"}';
}

function nameOf({ name }: IndexFacts): string {
  return name ?? '';
}

function describeIndex(index: IndexFacts | undefined): string {
  const { key, partialFilterExpression = null, expireAfterSeconds = null, sparse, unique } = index ?? {};
  return JSON.stringify([key, partialFilterExpression, expireAfterSeconds, sparse === true, unique === true]);
}

export interface ServerFacts {
  version: string;
  /** The version of the MongoDB driver. */
  driver: string;
  topology: 'standalone' | 'replicaSet' | 'sharded';
  /** Without arbiters. */
  members: number;
  arbiters: number;
  writeConcern: { w: string | number | null; journal: boolean };
  localTime: Date;
}

export async function inspectServer(c: Collections): Promise<ServerFacts> {
  const limit = { maxTimeMS: MAX_QUERY_MS };
  const [build, hello] = await Promise.all([
    c.db.command({ buildInfo: 1, ...limit }),
    c.db.command({ hello: 1, ...limit }),
  ]);
  const { w, journal } = c.jobs.writeConcern ?? {};
  return {
    version: String(build['version']),
    driver: driverVersion(),
    topology: isMongos(hello) ? 'sharded' : hello['setName'] === undefined ? 'standalone' : 'replicaSet',
    members: Array.isArray(hello['hosts']) ? hello['hosts'].length : 1,
    arbiters: Array.isArray(hello['arbiters']) ? hello['arbiters'].length : 0,
    writeConcern: { w: w ?? null, journal: journal === true },
    localTime: hello['localTime'] as Date,
  };
}

/** Whether this process is connected to mongos, the router of a sharded cluster. */
export async function usesMongos(c: Collections): Promise<boolean> {
  return isMongos(await c.db.command({ hello: 1, maxTimeMS: MAX_QUERY_MS }));
}

function isMongos(hello: Record<string, unknown>): boolean {
  return hello['msg'] === 'isdbgrid';
}

/** The driver that mongoose uses. The application may have installed another version. */
function driverVersion(): string {
  const requireFromMongoose = createRequire(createRequire(import.meta.url).resolve('mongoose'));
  return (requireFromMongoose('mongodb/package.json') as { version: string }).version;
}

/**
 * Every job is written several times, and validating all its fields would cost a fifth of the throughput. For these
 * models the server validates only the fields by which workers find and claim jobs.
 */
const CHECKED_FIELDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['Job', ['taskType', 'queue', 'priority', 'status', 'nextRunAt', 'fence']],
  ['Execution', []],
]);

export interface JsonSchema {
  title: string;
  required?: string[];
  properties: Record<string, object>;
}

/** The schema with all fields of a model. */
export function fullSchema(name: string, schema: Pick<Schema, 'toJSONSchema'>): JsonSchema {
  const generated = schema.toJSONSchema({ useBsonType: true }) as Omit<JsonSchema, 'title'>;
  return { title: `Chronos ${name}`, ...generated };
}

/** The schema that the server validates with every write. */
export function validatorFor(name: string, schema: Pick<Schema, 'toJSONSchema'>): JsonSchema {
  const full = fullSchema(name, schema);
  const fields = CHECKED_FIELDS.get(name);
  if (fields === undefined) return full;
  const { title, required = [], properties } = full;
  const checked = Object.entries(properties).filter(([field]) => fields.includes(field));
  return {
    title,
    ...(fields.length > 0 && { required: required.filter((field) => fields.includes(field)) }),
    properties: Object.fromEntries(checked),
  };
}
