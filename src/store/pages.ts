import type { mongo } from 'mongoose';
import { MOST_TIME } from './bounded.js';

/** The place after a document: its time where the order goes by one, and its id. */
export interface Place {
  at: Date | null;
  id: string;
}

export interface PageRequest<T> {
  filter: mongo.Filter<T>;
  direction: 1 | -1;
  projection: Readonly<Record<string, 0 | 1>>;
  limit: number;
  after: Place | undefined;
  /** Left out where the planner knows better which index has less to read. */
  hint?: string | Record<string, 1>;
}

type Collection<T extends { _id: string }> = mongo.Collection<T>;

/** In the order of their ids. */
export async function pageById<T extends { _id: string }>(
  collection: Collection<T>,
  request: PageRequest<T>,
): Promise<T[]> {
  const { filter, direction, after } = request;
  const rest = after === undefined ? {} : { _id: past(direction, after.id) };
  return find(collection, request, [filter, rest], { _id: direction }, request.limit);
}

/**
 * In the order of a time and, where it is equal, of their ids. The indexes have the time only, so that those with the
 * same time are asked for apart: what has to be sorted is never more than they.
 */
export async function pageByTime<T extends { _id: string }>(
  collection: Collection<T>,
  time: keyof T & string,
  request: PageRequest<T>,
): Promise<T[]> {
  const { filter, direction, limit, after } = request;
  const timeOf = (document: T): number => (document[time] as Date).getTime();
  const inOrder = (a: T, b: T): number =>
    direction * (timeOf(a) - timeOf(b) || (a._id < b._id ? -1 : a._id > b._id ? 1 : 0));
  const ties = (at: Date, rest: object, most: number): Promise<T[]> =>
    find(collection, request, [filter, { [time]: at }, rest], { _id: direction }, most);

  let from = after?.at ?? undefined;
  const page =
    after === undefined || from === undefined
      ? []
      : await ties(from, { _id: past(direction, after.id) }, limit);
  while (page.length < limit) {
    const left = limit - page.length;
    const rest = from === undefined ? {} : { [time]: past(direction, from) };
    const found = await find(collection, request, [filter, rest], { [time]: direction }, left + 1);
    if (found.length <= left) return [...page, ...found.sort(inOrder)];
    // Of those with the last time there may be more.
    const last = found.at(-1)?.[time] as Date;
    page.push(...found.filter((document) => timeOf(document) !== last.getTime()).sort(inOrder));
    page.push(...(await ties(last, {}, limit - page.length)));
    from = last;
  }
  return page;
}

function past(direction: 1 | -1, value: Date | string): object {
  return direction === 1 ? { $gt: value } : { $lt: value };
}

function find<T extends { _id: string }>(
  collection: Collection<T>,
  { projection, hint }: PageRequest<T>,
  conditions: object[],
  sort: Record<string, 1 | -1>,
  limit: number,
): Promise<T[]> {
  if (limit === 0) return Promise.resolve([]);
  const $and = conditions.filter((condition) => Object.keys(condition).length > 0);
  const filter = ($and.length === 0 ? {} : { $and }) as mongo.Filter<T>;
  const options = { projection, sort, limit, maxTimeMS: MOST_TIME, ...(hint !== undefined && { hint }) };
  return collection.find<T>(filter, options).toArray();
}
