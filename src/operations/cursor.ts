import { ChronosError } from '../domain/errors.js';
import type { Place } from '../store/pages.js';

/** A page of a list; `next` is where the following one begins, null when there is none. */
export interface Paged<T> {
  items: T[];
  next: string | null;
}

/** Text that says where a list goes on, for whoever asks for the next page. */
export function toCursor({ at, id }: Place): string {
  return Buffer.from(JSON.stringify([at === null ? null : at.getTime(), id])).toString('base64url');
}

/** Comes from outside: anything that is not a number or null and a text is refused. */
export function fromCursor(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return undefined;
  const place = read(cursor);
  if (place === undefined) throw badCursor();
  return place;
}

export function badCursor(): ChronosError {
  return new ChronosError(
    'INVALID_ARGUMENT',
    '`after` must be the `next` of a page that was asked for with the same filter: begin again without it',
  );
}

/** Cuts what was read beyond the page, which only says that there is more. */
export function paged<D, T>(
  found: readonly D[],
  limit: number,
  placeOf: (document: D) => Place,
  view: (document: D) => T,
): Paged<T> {
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const next = found.length > limit && last !== undefined ? toCursor(placeOf(last)) : null;
  return { items: shown.map(view), next };
}

function read(cursor: string): Place | undefined {
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
