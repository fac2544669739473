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

/** How ids are compared that are text outside the store. */
export interface IdOrder {
  compare: (a: string, b: string) => number;
  /** Conditions on `_id` that together match the ids that follow this one, in the order of their results. */
  beyond: (direction: 1 | -1, id: string) => object[];
}

const TEXT_ORDER: IdOrder = {
  compare: (a, b) => (a < b ? -1 : a > b ? 1 : 0),
  beyond: (direction, id) => [beyond(direction, id)],
};

interface PageRequest<T extends { _id: string }> extends PageQuery<object> {
  /** Reads a stored document. */
  read?: (document: object) => T;
  idOrder?: IdOrder;
  /** Other programs write to the collection: a list by time ends with documents that have no valid time, as many as fit on its last page. */
  includeMalformed?: true;
  direction: 1 | -1;
  projection: Readonly<Record<string, 0 | 1>>;
  /** Without a hint the planner chooses the index. */
  hint?: string | Record<string, 1>;
}

/** Ordered by id. */
export async function pageById<T extends { _id: string }>(
  collection: AnyCollection,
  request: PageRequest<T>,
): Promise<T[]> {
  return afterId(collection, request, {}, request.after?.id, request.limit);
}

/** Up to `max` documents, ordered by id, after this one. */
async function afterId<T extends { _id: string }>(
  collection: AnyCollection,
  request: PageRequest<T>,
  condition: object,
  id: string | undefined,
  max: number,
): Promise<T[]> {
  const { filter, direction, idOrder = TEXT_ORDER } = request;
  const found: T[] = [];
  for (const _id of id === undefined ? [undefined] : idOrder.beyond(direction, id)) {
    const conditions = [filter, condition, _id === undefined ? {} : { _id }];
    found.push(...(await find(collection, request, conditions, { _id: direction }, max - found.length)));
  }
  return found;
}

/**
 * Ordered by a time and then by id. The indexes contain the time but not the id. Therefore a separate query reads
 * documents with the same time, so that only these are sorted by id.
 */
export async function pageByTime<T extends { _id: string }>(
  collection: AnyCollection,
  time: keyof T & string,
  request: PageRequest<T>,
): Promise<T[]> {
  const { filter, direction, limit, after, idOrder = TEXT_ORDER } = request;
  const timeOf = (document: T): number => (document[time] as Date).getTime();
  const inOrder = (a: T, b: T): number =>
    direction * (timeOf(a) - timeOf(b) || idOrder.compare(a._id, b._id));
  // Conditions match an array if one of its entries does. A document with an array instead of a time is left out.
  const isTime = { [time]: { ...ANY_DATE, $not: { $type: 'array' } } };
  const withTime = (at: Date, id: string | undefined, max: number): Promise<T[]> =>
    afterId(collection, request, { $and: [isTime, { [time]: at }] }, id, max);

  let from = after?.at ?? undefined;
  const page = after === undefined || from === undefined ? [] : await withTime(from, after.id, limit);
  while (page.length < limit) {
    const left = limit - page.length;
    const rest = from === undefined ? {} : { [time]: beyond(direction, from) };
    const conditions = [filter, isTime, rest];
    const found = await find(collection, request, conditions, { [time]: direction }, left + 1);
    if (found.length <= left) {
      page.push(...found.sort(inOrder));
      if (request.includeMalformed !== true) return page;
      // One less than the limit, so that the page is the last one.
      const room = limit - 1 - page.length;
      const withoutTime = [filter, { [time]: { $not: ANY_DATE } }];
      return [...page, ...(await find(collection, request, withoutTime, { [time]: direction }, room))];
    }
    // There may be more documents with the same time as the last one.
    const last = found.at(-1)?.[time] as Date;
    page.push(...found.filter((document) => timeOf(document) !== last.getTime()).sort(inOrder));
    page.push(...(await withTime(last, undefined, limit - page.length)));
    from = last;
  }
  return page;
}

const MAX_DATE_MS = 8.64e15;

/** Every date that JavaScript can represent. */
export const ANY_DATE = { $gte: new Date(-MAX_DATE_MS), $lte: new Date(MAX_DATE_MS) };

/** The part of a collection of any type that is used here. */
interface AnyCollection {
  find(filter: object, options: mongo.FindOptions): { toArray(): Promise<object[]> };
}

function beyond(direction: 1 | -1, value: Date | string): object {
  return direction === 1 ? { $gt: value } : { $lt: value };
}

async function find<T extends { _id: string }>(
  collection: AnyCollection,
  { projection, hint, read = (document) => document as T }: PageRequest<T>,
  conditions: object[],
  sort: Record<string, 1 | -1>,
  limit: number,
): Promise<T[]> {
  if (limit <= 0) return [];
  const $and = conditions.filter((condition) => Object.keys(condition).length > 0);
  const filter = $and.length === 0 ? {} : { $and };
  const options = { projection, sort, limit, maxTimeMS: MAX_QUERY_MS, ...(hint !== undefined && { hint }) };
  const found = await collection.find(filter, options).toArray();
  return found.map(read);
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
