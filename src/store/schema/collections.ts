import { mongo, type Schema } from 'mongoose';
import type { ExecutionDocument } from '../../domain/job/execution.js';
import type { JobDocument } from '../../domain/job/job.js';
import type { ScheduleDocument, SkipDocument } from '../../domain/schedule/schedule.js';
import { executionSchema, jobSchema } from './job-schemas.js';
import { scheduleSchema, skipSchema } from './schedule-schemas.js';
import {
  type AuditDocument,
  auditSchema,
  type LockDocument,
  lockSchema,
  type WorkerDocument,
  workerSchema,
} from './system-schemas.js';

/** Operations use the driver's collections: mongoose's hydrated documents cost several times as much. */
export interface Collections {
  db: mongo.Db;
  jobs: mongo.Collection<JobDocument>;
  executions: mongo.Collection<ExecutionDocument>;
  workers: mongo.Collection<WorkerDocument>;
  locks: mongo.Collection<LockDocument>;
  schedules: mongo.Collection<ScheduleDocument>;
  skips: mongo.Collection<SkipDocument>;
  audit: mongo.Collection<AuditDocument>;
}

export type CollectionName = Exclude<keyof Collections, 'db'>;

/** The schema of each collection, by the name of one of its documents. */
export const SCHEMAS: Readonly<Record<string, { name: CollectionName; schema: Schema }>> = {
  Job: { name: 'jobs', schema: jobSchema },
  Execution: { name: 'executions', schema: executionSchema },
  Worker: { name: 'workers', schema: workerSchema },
  Lock: { name: 'locks', schema: lockSchema },
  Schedule: { name: 'schedules', schema: scheduleSchema },
  Skip: { name: 'skips', schema: skipSchema },
  Audit: { name: 'audit', schema: auditSchema },
};

/**
 * Everything that a client could change about an operation, so that neither a connection string nor the application's
 * client does: with w: 1 acknowledged jobs could be lost, and a lagging secondary would make our own locks look lost.
 */
const HANDLE_OPTIONS = {
  writeConcern: { w: 'majority', journal: true },
  readConcern: new mongo.ReadConcern('local'),
  readPreference: 'primary',
  raw: false,
  useBigInt64: false,
  promoteLongs: true,
  promoteValues: true,
  promoteBuffers: false,
  bsonRegExp: false,
  fieldsAsRaw: {},
  enableUtf8Validation: true,
  ignoreUndefined: false,
  serializeFunctions: false,
  forceServerObjectId: false,
} as const satisfies mongo.CollectionOptions & mongo.DbOptions;

/** Where the options of each method are among its arguments. */
const COLLECTION_METHODS = {
  ...{ insertOne: 1, insertMany: 1, bulkWrite: 1, updateOne: 2, updateMany: 2, replaceOne: 2 },
  ...{ findOneAndUpdate: 2, deleteOne: 1, deleteMany: 1, find: 1, findOne: 1, aggregate: 1 },
  ...{ countDocuments: 1, estimatedDocumentCount: 0, distinct: 2, indexes: 0, createIndexes: 1 },
} as const satisfies Partial<Record<keyof mongo.Collection, number>>;
const DB_METHODS = { command: 1, listCollections: 1 } as const satisfies Partial<
  Record<keyof mongo.Db, number>
>;

export interface OpenOptions {
  client: mongo.MongoClient;
  database: string;
  prefix: string;
  /** Called for each operation; aborting the signal ends it. Without it, the timeouts of the client apply. */
  signal?: () => AbortSignal;
}

export function openDb({ client, database, signal }: Omit<OpenOptions, 'prefix'>): mongo.Db {
  const db = client.db(database, HANDLE_OPTIONS);
  return signal === undefined ? db : withSignal(db, DB_METHODS, signal);
}

export function openCollections(options: OpenOptions): Collections {
  const { prefix, signal } = options;
  const db = openDb(options);
  const open = <T extends mongo.Document>(name: string): mongo.Collection<T> => {
    const collection = db.collection<T>(`${prefix}${name}`, HANDLE_OPTIONS);
    return signal === undefined ? collection : withSignal(collection, COLLECTION_METHODS, signal);
  };
  return {
    db,
    jobs: open('jobs'),
    executions: open('executions'),
    workers: open('workers'),
    locks: open('locks'),
    schedules: open('schedules'),
    skips: open('skips'),
    audit: open('audit'),
  };
}

/** The same object, whose methods pass a signal to the driver. */
function withSignal<T extends object>(
  target: T,
  methods: Readonly<Record<string, number>>,
  signal: () => AbortSignal,
): T {
  const wrapped = Object.create(target) as T;
  for (const [method, optionsAt] of Object.entries(methods)) {
    const call = (target as Record<string, (...args: unknown[]) => unknown>)[method];
    Object.defineProperty(wrapped, method, {
      value: (...args: unknown[]) => {
        args[optionsAt] = { ...(args[optionsAt] as object | undefined), signal: signal() };
        return call?.apply(target, args);
      },
    });
  }
  return wrapped;
}
