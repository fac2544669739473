import type { mongo } from 'mongoose';
import type { JobDocument } from '../../src/domain/job/job.js';
import type { Collections } from '../../src/store/schema/collections.js';

type Filter = Record<string, unknown>;

/**
 * Collections that remove the lock token from the filter of every write to jobs. A store on them behaves like a system
 * that matches jobs by id only.
 */
export function withoutFence(collections: Collections): Collections {
  const jobs = new Proxy(collections.jobs, {
    get(target, property, receiver) {
      if (property === 'updateOne' || property === 'updateMany') {
        return (filter: Filter, ...rest: [mongo.UpdateFilter<JobDocument>]) =>
          target[property](unguarded(filter), ...rest);
      }
      if (property === 'bulkWrite') {
        return (statements: object[], ...rest: [object]) =>
          target.bulkWrite(statements.map(unguardedStatement) as never, ...rest);
      }
      const value: unknown = Reflect.get(target, property, receiver);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  return { ...collections, jobs };
}

function unguarded(filter: Filter): Filter {
  const { lockToken: _, ...rest } = filter;
  return rest;
}

function unguardedStatement(statement: object): object {
  return Object.fromEntries(
    Object.entries(statement).map(([kind, body]: [string, { filter: Filter }]) => [
      kind,
      { ...body, filter: unguarded(body.filter) },
    ]),
  );
}
