import type { mongo } from 'mongoose';
import type { ExecutionDocument } from '../../src/domain/job/execution.js';
import type { JobDocument } from '../../src/domain/job/job.js';
import { readExecution, type StoredExecution } from '../../src/store/jobs/stored-execution.js';
import {
  counterIs,
  readJob,
  type StoredJob,
  toStoredId,
  toStoredJob,
} from '../../src/store/jobs/stored-job.js';
import type { Collections } from '../../src/store/schema/collections.js';

/** Collections whose documents look as they do outside the store: ids are text, and absent fields have their defaults. */
export type ReadableCollections = Omit<Collections, 'jobs' | 'executions'> & {
  jobs: mongo.Collection<JobDocument>;
  executions: mongo.Collection<ExecutionDocument>;
};

export function readableCollections(collections: Collections): ReadableCollections {
  const { jobs, executions } = collections;
  return { ...collections, jobs: readableJobs(jobs), executions: readableExecutions(executions) };
}

function readableExecutions(
  executions: mongo.Collection<StoredExecution>,
): mongo.Collection<ExecutionDocument> {
  return new Proxy(executions as mongo.Collection<ExecutionDocument>, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== 'function') return value;
      const call = (...args: unknown[]): unknown =>
        (value as (...all: unknown[]) => unknown).apply(target, args);
      if (name === 'find')
        return (...args: unknown[]) =>
          (call(...args) as mongo.FindCursor<StoredExecution>).map(readExecution);
      if (name !== 'findOne') return call;
      return async (...args: unknown[]) => {
        const found = (await call(...args)) as StoredExecution | null;
        return found === null ? null : readExecution(found);
      };
    },
  });
}

/** Translates filters, inserted jobs and results of the real collection. Updates are passed on as they are. */
function readableJobs(jobs: mongo.Collection<StoredJob>): mongo.Collection<JobDocument> {
  const collection = jobs as unknown as mongo.Collection<JobDocument>;
  return new Proxy(collection, {
    get(_, name) {
      const value = Reflect.get(jobs, name, jobs) as unknown;
      if (typeof value !== 'function') return value;
      const call = (...args: unknown[]): unknown =>
        (value as (...all: unknown[]) => unknown).apply(jobs, args);
      switch (name) {
        case 'insertOne':
          return (job: JobDocument, ...rest: unknown[]) => call(toStoredJob(job), ...rest);
        case 'insertMany':
          return (some: JobDocument[], ...rest: unknown[]) => call(some.map(toStoredJob), ...rest);
        case 'find':
          return (filter: object = {}, ...rest: unknown[]) =>
            (call(toStoredFilter(filter), ...rest) as mongo.FindCursor<StoredJob>).map(readable);
        case 'findOne':
        case 'findOneAndUpdate':
        case 'findOneAndDelete':
          return async (filter: object = {}, ...rest: unknown[]) => {
            const found = (await call(toStoredFilter(filter), ...rest)) as StoredJob | null;
            return found === null ? null : readable(found);
          };
        case 'updateOne':
        case 'updateMany':
        case 'deleteOne':
        case 'deleteMany':
        case 'countDocuments':
          return (filter: object = {}, ...rest: unknown[]) => call(toStoredFilter(filter), ...rest);
        default:
          return call;
      }
    },
  });
}

function readable(stored: StoredJob): JobDocument {
  const job = readJob(stored);
  delete job.invalid;
  return job;
}

const COUNTERS = ['fence', 'attempts', 'crashes', 'lostWhileQueued'];

function toStoredFilter(filter: object): object {
  return Object.fromEntries(
    Object.entries(filter).map(([field, condition]) => {
      if (field === '_id') return [field, toStoredCondition(condition)];
      return [field, COUNTERS.includes(field) && condition === 0 ? counterIs(0) : condition];
    }),
  );
}

function toStoredCondition(id: unknown): unknown {
  if (typeof id === 'string') return toStoredId(id);
  if (Array.isArray(id)) return id.map(toStoredCondition);
  if (typeof id !== 'object' || id === null || '_bsontype' in id || id instanceof RegExp) return id;
  return Object.fromEntries(
    Object.entries(id).map(([operator, value]) => [operator, toStoredCondition(value)]),
  );
}
