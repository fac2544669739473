import { mongo, type Schema } from 'mongoose';
import type { ScheduleDocument, SkipDocument } from '../../domain/schedule/schedule.js';
import { unlessAborted } from '../../runtime/waiting.js';
import type { StoredExecution } from '../jobs/stored-execution.js';
import type { StoredJob } from '../jobs/stored-job.js';
import { executionSchema, jobSchema } from './job-schemas.js';
import { scheduleSchema, skipSchema } from './schedule-schemas.js';
import {
  type AuditDocument,
  auditSchema,
  type InstallationDocument,
  installationSchema,
  type LockDocument,
  lockSchema,
  type WorkerDocument,
  workerSchema,
} from './system-schemas.js';

/** Operations use the driver's collections: mongoose's hydrated documents cost several times as much. */
export interface Collections {
  db: mongo.Db;
  jobs: mongo.Collection<StoredJob>;
  executions: mongo.Collection<StoredExecution>;
  workers: mongo.Collection<WorkerDocument>;
  locks: mongo.Collection<LockDocument>;
  schedules: mongo.Collection<ScheduleDocument>;
  skips: mongo.Collection<SkipDocument>;
  audit: mongo.Collection<AuditDocument>;
  installation: mongo.Collection<InstallationDocument>;
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
  Installation: { name: 'installation', schema: installationSchema },
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
  ...{
    findOneAndUpdate: 2,
    findOneAndDelete: 1,
    deleteOne: 1,
    deleteMany: 1,
    find: 1,
    findOne: 1,
    aggregate: 1,
  },
  ...{ countDocuments: 1, estimatedDocumentCount: 0, distinct: 2, indexes: 0, createIndexes: 1 },
} as const satisfies Partial<Record<keyof mongo.Collection, number>>;
const DB_METHODS = { command: 1, listCollections: 1 } as const satisfies Partial<
  Record<keyof mongo.Db, number>
>;

/** The methods of a cursor that wait for the server. */
const CURSOR_METHODS = ['toArray', 'next', 'hasNext', 'tryNext'] as const;

export interface OpenOptions {
  client: mongo.MongoClient;
  database: string;
  prefix: string;
  /** Called for each operation, with the name of the driver's method. Aborting the signal ends the operation. Default: no limit. */
  signal?: (method: string) => AbortSignal;
}

export function openDb({ client, database, signal }: Omit<OpenOptions, 'prefix'>): mongo.Db {
  const db = client.db(database, HANDLE_OPTIONS);
  return signal === undefined ? db : withDeadlines(db, DB_METHODS, signal);
}

export function openCollections(options: OpenOptions): Collections {
  const { prefix, signal } = options;
  const db = openDb(options);
  const open = <T extends mongo.Document>(name: string): mongo.Collection<T> => {
    const collection = db.collection<T>(`${prefix}${name}`, HANDLE_OPTIONS);
    return signal === undefined ? collection : withDeadlines(collection, COLLECTION_METHODS, signal);
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
    installation: open('installation'),
  };
}

/**
 * The same object, whose methods end when their signal is aborted, whatever the driver does: it can wait forever for a
 * socket that is closing. The driver gets the signal as well, and then closes the connection that the operation used.
 */
function withDeadlines<T extends object>(
  target: T,
  methods: Readonly<Record<string, number>>,
  signalFor: (method: string) => AbortSignal,
): T {
  const limited = Object.create(target) as T;
  for (const [method, optionsAt] of Object.entries(methods)) {
    const call = (target as Record<string, (...args: unknown[]) => unknown>)[method];
    Object.defineProperty(limited, method, {
      value: (...args: unknown[]) => {
        const signal = signalFor(method);
        args[optionsAt] = { ...(args[optionsAt] as object | undefined), signal };
        const result = call?.apply(target, args);
        return result instanceof Promise ? unlessAborted(signal, result) : limitCursor(result, signal);
      },
    });
  }
  return limited;
}

function limitCursor<C>(cursor: C, signal: AbortSignal): C {
  passSignalToGetMore(cursor, signal);
  for (const method of CURSOR_METHODS) {
    const call = (cursor as Partial<Record<string, () => Promise<unknown>>>)[method];
    if (call === undefined) continue;
    Object.defineProperty(cursor, method, { value: () => unlessAborted(signal, call.call(cursor)) });
  }
  return cursor;
}

/**
 * The driver passes the signal of a cursor to its first command only. Without a signal, a `getMore` that hangs would keep
 * its connection forever. There is no public option for it; in a driver without this field, only that is lost.
 */
export function passSignalToGetMore(cursor: unknown, signal: AbortSignal): void {
  const { cursorOptions } = cursor as { cursorOptions?: { signal?: AbortSignal } };
  if (cursorOptions !== undefined) cursorOptions.signal = signal;
}
