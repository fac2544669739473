import { MAX_DURATION_MS } from './duration.js';
import { describeValue, redactCredentials } from './errors.js';
import { isList } from './language.js';
import { jsonText } from './text.js';
import * as v from './validation.js';

// Values of stored documents, which other programs may have written. A number is neither NaN nor infinite here.

const MAX_SHOWN = 120;

/** Like the one for options, but messages show objects: whoever reads them did not write the document. */
export function matching<T>(expected: string, accepts: (value: unknown) => boolean): v.Shape<T> {
  return v.custom((value) =>
    accepts(value) ? undefined : `must be ${expected}, got ${describeStored(value)}`,
  );
}

export function describeStored(value: unknown): string {
  if (typeof value !== 'object' || value === null) return describeValue(value);
  if (driverType(value) === 'Long') return (value as { toString: () => string }).toString();
  const json = redactCredentials(jsonText(value).slice(0, 10_000));
  return json.length > MAX_SHOWN ? `${json.slice(0, MAX_SHOWN)}…` : json;
}

/**
 * The name of one of the driver's own types: `ObjectId`, `Long` … By name, because the application's client may come from
 * another copy of the driver; and of the prototype, because a stored document may have a field with this name.
 */
export function driverType(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Object.hasOwn(value, RESERVED_KEY)) return undefined;
  return (value as Record<string, unknown>)[RESERVED_KEY];
}

/** The driver refuses to write an object that has this key itself. Some programs store their ids as such objects. */
const RESERVED_KEY = '_bsontype';

export function hasReservedKey(value: unknown): boolean {
  if (isList(value)) return value.some(hasReservedKey);
  if (!isPlainObject(value)) return false;
  return Object.hasOwn(value, RESERVED_KEY) || Object.values(value).some(hasReservedKey);
}

/** The value in a form that the driver writes as it is, also with the reserved key: it writes a Map as a document. */
export function toWritable(value: unknown): unknown {
  if (isList(value)) return value.map(toWritable);
  if (!isPlainObject(value)) return value;
  return new Map(Object.entries(value).map(([key, inner]) => [key, toWritable(inner)]));
}

/** Not one of the driver's own types, which are written as they are. */
function isPlainObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

export const text = matching<string>('a string', (value) => typeof value === 'string');

export const count = matching<number>('a number of at least 0', isCount);

export const priority = matching<number>(
  'a number from 0 to 1000',
  (value) => isCount(value) && value <= 1000,
);

export const milliseconds = matching<number>('a number of milliseconds from 0 to 100 years', isMilliseconds);

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

export function isMilliseconds(value: unknown): value is number {
  return isCount(value) && value <= MAX_DURATION_MS;
}

export function isTextOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}
