import fc from 'fast-check';
import { mongo } from 'mongoose';
import { driverLike } from './invalid-documents.js';

/** `npm run fuzz` sets these. `npm test` makes the same few runs every time, so that only a change can make it fail. */
const { FUZZ_TIMES, FUZZ_SEED } = process.env;
export const isLongFuzz = FUZZ_TIMES !== undefined;

export function fuzzParameters(shortRuns: number): { numRuns: number; seed: number; endOnFailure: boolean } {
  return {
    numRuns: shortRuns * Number(FUZZ_TIMES ?? 1),
    seed: Number(FUZZ_SEED ?? 1),
    // Shrinking takes long against a database, and the seed reproduces the failure.
    endOnFailure: true,
  };
}

/** Values that another program may have stored in any field. */
export function storedValues(): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.constantFrom<unknown>(null, undefined, true, false, '', 'x', NaN, Infinity, -1, 0, 1e300, [], {}),
    fc.constantFrom<unknown>(new Date(0), new Date(8.64e15), new Date(-8.64e15), new mongo.ObjectId()),
    fc.constantFrom<unknown>(mongo.Long.MAX_VALUE, new mongo.Binary(Buffer.from('x')), /x/, { $gt: '' }),
    // Cannot be compared or converted to text.
    fc.constantFrom<unknown>({ toString: 'x', valueOf: 'x' }),
    fc.constantFrom<unknown>(...['ObjectId', 'Long', 'Date'].map(driverLike)),
    // A condition on a date matches an array that contains it.
    fc.constantFrom<unknown>([new Date(0)]),
    fc.integer(),
    fc.double(),
    fc.string({ maxLength: 20 }),
    fc.date({ noInvalidDate: true }),
    fc.jsonValue({ maxDepth: 2 }),
  );
}

/**
 * A document in which one field, or one field of a nested object, has a value that may not belong there. `more`: paths
 * of fields that the document may have and this one has not.
 */
export function corrupted<T extends object>(
  document: T,
  more: readonly (readonly string[])[] = [],
): fc.Arbitrary<T> {
  const fields = Object.entries(document)
    .filter(([field]) => field !== '_id')
    .flatMap(([field, value]) => [[field], ...nestedFields(value).map((inner) => [field, inner])]);
  return fc
    .tuple(fc.constantFrom(...fields, ...more), storedValues())
    .map(([path, value]) => replaced(document, path, value) as T);
}

function nestedFields(value: unknown): string[] {
  const isPlain = typeof value === 'object' && value !== null && value.constructor === Object;
  return isPlain ? Object.keys(value) : [];
}

function replaced(value: unknown, [field, ...inner]: readonly string[], replacement: unknown): unknown {
  if (field === undefined) return replacement;
  const document = value as Record<string, unknown>;
  return { ...document, [field]: replaced(document[field], inner, replacement) };
}

/** An argument that fast-check need not copy or print, because some cannot be read; `toString` is what a failure shows. */
export interface Argument {
  value: () => unknown;
  toString: () => string;
}

/** What a program may pass by mistake or on purpose: alone, or as options with these names. */
export function argumentsOf(optionNames: readonly string[]): fc.Arbitrary<Argument> {
  const single = fc.oneof(
    storedValues().map((value): Argument => ({ value: () => value, toString: () => fc.stringify(value) })),
    fc.constantFrom(
      ...Object.entries(UNUSUAL).map(([name, value]): Argument => ({ value, toString: () => name })),
    ),
  );
  const options = fc
    .dictionary(fc.constantFrom(...optionNames), single, { minKeys: 1, maxKeys: 4 })
    .map(toOptions);
  return fc.oneof({ arbitrary: single, weight: 2 }, { arbitrary: options, weight: 1 });
}

function toOptions(entries: Record<string, Argument>): Argument {
  const list = Object.entries(entries);
  return {
    value: () => Object.fromEntries(list.map(([name, { value }]) => [name, value()])),
    toString: () => `{ ${list.map(([name, value]) => `${name}: ${value.toString()}`).join(', ')} }`,
  };
}

const throwing = (): never => {
  throw new Error('from a getter');
};
const throwingTraps = { get: throwing, has: throwing, ownKeys: throwing, getPrototypeOf: throwing };

export function revokedProxy(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

export function throwingGetter(name: string): object {
  return Object.defineProperty({}, name, { get: throwing, enumerable: true });
}

/** Arrays with more than 2 ** 25 holes take no memory. */
export function holes(length: number): unknown[] {
  return Object.assign([], { length });
}

const UNUSUAL: Record<string, () => unknown> = {
  'no prototype': () => Object.create(null) as unknown,
  'a fake Date': () => Object.create(Date.prototype) as unknown,
  'a fake ObjectId': () => Object.create(mongo.ObjectId.prototype) as unknown,
  'a forged _bsontype': () => ({ _bsontype: 'ObjectId' }),
  'a throwing getter state': () => throwingGetter('state'),
  'a throwing getter queue': () => throwingGetter('queue'),
  'a throwing getter then': () => throwingGetter('then'),
  'a throwing getter handle': () => throwingGetter('handle'),
  'a throwing proxy': () => new Proxy({}, throwingTraps),
  'a throwing proxy of a list': () => new Proxy([], throwingTraps),
  'a throwing proxy of a function': () => new Proxy(() => undefined, throwingTraps),
  'a revoked proxy': () => revokedProxy({}),
  'a revoked proxy of a function': () => revokedProxy(() => undefined),
  'a list with a revoked proxy': () => [revokedProxy({})],
  'a symbol': () => Symbol('x'),
  'a bigint': () => 10n,
  'a function': () => () => undefined,
  'a map': () => new Map(),
  'an invalid date': () => new Date(NaN),
  'a long text': () => 'x'.repeat(1 << 20),
  'a list of holes': () => holes(40_000_000),
  'a throwing toString': () => ({ toString: throwing, valueOf: throwing }),
  'an iterator that is a number': () => ({ [Symbol.iterator]: 5 }),
  'many unknown options': () => Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`key${i}`, i])),
  'a task type': () => 'work',
  'the id of a schedule': () => 'known',
  'a duration': () => '1h',
  'a cron expression': () => '0 * * * *',
  'a date': () => new Date('2026-01-01T00:00:00Z'),
  'a filter': () => ({ queue: 'default' }),
};
