import type { mongo } from 'mongoose';
import type { Page } from '../config/query-options.js';
import { ChronosError } from '../domain/errors.js';
import { MAX_QUERY_MS } from './query-limits.js';

/** Where a page ends: the id of its last document, and its time if the page is ordered by time. */
export interface PagePosition {
  at: Date | null;
  id: string;
}

export interface PageQuery<F> {
  filter: F;
  after: PagePosition | undefined;
  limit: number;
}

interface PageRequest<T> extends PageQuery<mongo.Filter<T>> {
  direction: 1 | -1;
  projection: Readonly<Record<string, 0 | 1>>;
  /** Without a hint the planner chooses the index. */
  hint?: string | Record<string, 1>;
}

/** Ordered by id. */
export async function pageById<T extends { _id: string }>(
  collection: mongo.Collection<T>,
  request: PageRequest<T>,
): Promise<T[]> {
  const { filter, direction, after } = request;
  const rest = after === undefined ? {} : { _id: beyond(direction, after.id) };
  return find(collection, request, [filter, rest], { _id: direction }, request.limit);
}

/**
 * Ordered by a time and then by id. The indexes contain the time but not the id. Therefore a separate query reads
 * documents with the same time, so that only these are sorted by id.
 */
export async function pageByTime<T extends { _id: string }>(
  collection: mongo.Collection<T>,
  time: keyof T & string,
  request: PageRequest<T>,
): Promise<T[]> {
  const { filter, direction, limit, after } = request;
  const timeOf = (document: T): number => (document[time] as Date).getTime();
  const inOrder = (a: T, b: T): number =>
    direction * (timeOf(a) - timeOf(b) || (a._id < b._id ? -1 : a._id > b._id ? 1 : 0));
  const withTime = (at: Date, rest: object, max: number): Promise<T[]> =>
    find(collection, request, [filter, { [time]: at }, rest], { _id: direction }, max);

  let from = after?.at ?? undefined;
  const page =
    after === undefined || from === undefined
      ? []
      : await withTime(from, { _id: beyond(direction, after.id) }, limit);
  while (page.length < limit) {
    const left = limit - page.length;
    const rest = from === undefined ? {} : { [time]: beyond(direction, from) };
    const found = await find(collection, request, [filter, rest], { [time]: direction }, left + 1);
    if (found.length <= left) return [...page, ...found.sort(inOrder)];
    // There may be more documents with the same time as the last one.
    const last = found.at(-1)?.[time] as Date;
    page.push(...found.filter((document) => timeOf(document) !== last.getTime()).sort(inOrder));
    page.push(...(await withTime(last, {}, limit - page.length)));
    from = last;
  }
  return page;
}

function beyond(direction: 1 | -1, value: Date | string): object {
  return direction === 1 ? { $gt: value } : { $lt: value };
}

function find<T extends { _id: string }>(
  collection: mongo.Collection<T>,
  { projection, hint }: PageRequest<T>,
  conditions: object[],
  sort: Record<string, 1 | -1>,
  limit: number,
): Promise<T[]> {
  if (limit === 0) return Promise.resolve([]);
  const $and = conditions.filter((condition) => Object.keys(condition).length > 0);
  const filter = ($and.length === 0 ? {} : { $and }) as mongo.Filter<T>;
  const options = { projection, sort, limit, maxTimeMS: MAX_QUERY_MS, ...(hint !== undefined && { hint }) };
  return collection.find<T>(filter, options).toArray();
}

/**
 * Reads one document more than the page has, which shows whether there is a next page. `isPosition` is false for a cursor
 * from a list in another order.
 */
export async function readPage<F, D>(
  { filter, limit, after: cursor }: { filter: F; limit: number; after: string | undefined },
  find: (query: PageQuery<F>) => Promise<D[]>,
  toPosition: (document: D) => PagePosition,
  isPosition = ({ at }: PagePosition): boolean => at !== null,
): Promise<Page<D>> {
  const after = cursor === undefined ? undefined : parseCursor(cursor);
  if (cursor !== undefined && (after === undefined || !isPosition(after))) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      '`after` must be the `next` of an earlier page with the same filter; leave it out to start at the first page',
    );
  }
  const found = await find({ filter, after, limit: limit + 1 });
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const next = found.length > limit && last !== undefined ? toCursor(toPosition(last)) : null;
  return { items, next };
}

function toCursor({ at, id }: PagePosition): string {
  return Buffer.from(JSON.stringify([at === null ? null : at.getTime(), id])).toString('base64url');
}

function parseCursor(cursor: string): PagePosition | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (!Array.isArray(value) || value.length !== 2) return undefined;
    const [at, id] = value as unknown[];
    if (typeof id !== 'string' || id === '') return undefined;
    if (at === null) return { at, id };
    const date = new Date(typeof at === 'number' ? at : NaN);
    return Number.isNaN(date.getTime()) ? undefined : { at: date, id };
  } catch {
    return undefined;
  }
}
