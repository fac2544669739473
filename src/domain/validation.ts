import { didYouMean } from './did-you-mean.js';
import { MAX_DURATION_MS, readDuration } from './duration.js';
import { ChronosError, describeValue, type ErrorCode, storedError, toError } from './errors.js';
import { findTextError, MAX_NAME_LENGTH } from './identifiers.js';
import { parseInstant } from './instant.js';
import { isList, isRecord, tryOr } from './language.js';

/**
 * Validates one value: an option, a field of a payload or of a stored document. The library and the CLI call `read`,
 * HTTP requests are checked against `schema`, and both come from one definition, so that each limit is written once.
 */
export interface Shape<T> {
  /** Returns the parsed value. If it is invalid, adds a message that starts with `path` to `errors`. */
  readonly read: (value: unknown, path: string, errors: string[]) => T | undefined;
  /** What a JSON request may contain. `{}` allows anything. */
  readonly schema: JsonSchema;
}

export type Shapes<T> = { readonly [K in keyof T]-?: Shape<Exclude<T[K], undefined>> };

export type Parsed<S> = S extends Shapes<infer T> ? T : never;

/** The part of JSON Schema 2020-12 (and so of OpenAPI 3.1) that is used here. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

/** Throws one error that lists every problem. `where` names the input in the messages. */
export function parse<T>(shape: Shape<T>, input: unknown, where: string, code: ErrorCode): T {
  const errors: string[] = [];
  const value = readable(() => shape.read(input, where, errors), where, code);
  if (errors.length > 0 || value === undefined) throw validationError(code, errors);
  return value;
}

/** The own properties of an options object, read once: a getter or a proxy may throw, or return something else later. */
export function copyOptions<T extends object>(
  input: T,
  where: string,
  code: ErrorCode = 'INVALID_ARGUMENT',
): T {
  return readable(
    () => {
      if (isRecord(input)) return { ...input };
      throw new ChronosError(code, `${where} must be an object, got ${describeValue(input)}`);
    },
    where,
    code,
  );
}

/** Calls `read`, which reads input. What a getter or a proxy in the input throws becomes a ChronosError. */
export function readable<T>(read: () => T, where: string, code: ErrorCode): T {
  try {
    return read();
  } catch (thrown) {
    if (tryOr(() => thrown instanceof ChronosError, false)) throw thrown;
    throw new ChronosError(
      code,
      `${where} cannot be read, because a getter or a proxy in it throws (${storedError(toError(thrown)).message}): pass a plain value`,
      { cause: thrown },
    );
  }
}

/** The validation errors of a stored document; empty if it is valid. */
export function collectErrors(fields: Readonly<Record<string, Shape<unknown>>>, document: unknown): string[] {
  const errors: string[] = [];
  const values = (document ?? {}) as Record<string, unknown>;
  for (const [field, shape] of Object.entries(fields)) shape.read(values[field], field, errors);
  return errors;
}

/** Messages list at most this many problems. */
const MAX_PROBLEMS = 100;

export function validationError(code: ErrorCode, errors: readonly string[]): ChronosError {
  const [first = ''] = errors;
  const more = errors.length - MAX_PROBLEMS;
  const shown = more > 0 ? [...errors.slice(0, MAX_PROBLEMS), `and ${more} more`] : errors;
  const list = shown.map((error) => `\n  - ${error}`).join('');
  return new ChronosError(code, errors.length === 1 ? first : `${errors.length} problems:${list}`);
}

export function integer(minimum: number, maximum: number): Shape<number> {
  return matching(
    `a whole number from ${minimum} to ${maximum}`,
    (value) => Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum,
    { type: 'integer', minimum, maximum },
  );
}

/** Milliseconds as a number, or text with its unit. `why` explains the maximum. */
export function duration({ min = 0, max = MAX_DURATION_MS, why = '' } = {}): Shape<number> {
  return {
    schema: { anyOf: [{ type: 'number', minimum: min, maximum: max }, DURATION_TEXT] },
    read: (value, path, errors) => {
      const read = readDuration(value);
      if ('error' in read) return fail(errors, `${path} ${read.error}`);
      if (read.ms < min)
        return fail(errors, `${path} must be at least ${min} ms, got ${describeValue(value)}`);
      if (read.ms <= max) return read.ms;
      const reason = why === '' ? '' : `: ${why}`;
      return fail(errors, `${path} must be at most ${max} ms, got ${describeValue(value)}${reason}`);
    },
  };
}

const DURATION_TEXT: JsonSchema = {
  type: 'string',
  maxLength: 30,
  pattern: '^\\d+(\\.\\d+)?\\s*[a-z]+$',
  description: "a text with its unit: '250ms', '10s', '5m', '1h', '3d'; a number is milliseconds",
};

/** A date, or text. Text without a zone is read in `timezone`. */
export function instant(timezone: string): Shape<Date> {
  return {
    schema: {
      type: 'string',
      maxLength: 40,
      pattern: '^\\d{4}-\\d{2}-\\d{2}[0-9T :.Z+-]*$',
      description: "like '2026-11-01T03:15:00Z', or '2026-11-01 03:15' in the scheduler's time zone",
    },
    read: (value, path, errors) => attempt(() => parseInstant(value, timezone, path), errors),
  };
}

/** Non-empty text that MongoDB can store. Messages do not show the value, which may be a secret. */
export function text(maxLength = Infinity): Shape<string> {
  return custom((value) => findTextError(value, maxLength), {
    type: 'string',
    minLength: 1,
    ...(maxLength < Infinity && { maxLength }),
    pattern: '^[^\\u0000]*$',
  });
}

export const name = text(MAX_NAME_LENGTH);

export const flag = matching('true or false', (value) => typeof value === 'boolean', { type: 'boolean' });

/** A function; its parameters and result are not checked. */
export function fn<T>(): Shape<T> {
  return matching<T>('a function', (value): boolean => typeof value === 'function');
}

export const anything: Shape<unknown> = { schema: {}, read: (value) => value };

export function oneOf<const T extends string>(...choices: readonly T[]): Shape<T> {
  const findError = (value: unknown): string | undefined => {
    if (choices.includes(value as T)) return undefined;
    const hint = typeof value === 'string' ? didYouMean(value, choices) : '';
    return `must be one of ${choices.join(', ')}, got ${describeValue(value)}${hint}`;
  };
  return custom(findError, { type: 'string', enum: choices });
}

/** A value that `accepts` returns true for; `expected` completes "must be …". */
export function matching<T>(
  expected: string,
  accepts: ((value: unknown) => value is T) | ((value: unknown) => boolean),
  schema: JsonSchema = {},
): Shape<T> {
  return custom(
    (value) => (accepts(value) ? undefined : `must be ${expected}, got ${describeValue(value)}`),
    schema,
  );
}

/** Like `matching`, but messages do not show the value. */
export function secret<T>(expected: string, accepts: (value: unknown) => value is T): Shape<T> {
  return custom((value) => (accepts(value) ? undefined : `must be ${expected} (its value is not shown)`));
}

/** `findError` returns what is wrong as a phrase that follows the path, such as "must not be empty". */
export function custom<T>(
  findError: (value: unknown) => string | undefined,
  schema: JsonSchema = {},
): Shape<T> {
  return {
    schema,
    read: (value, path, errors) => {
      const error = findError(value);
      return error === undefined ? (value as T) : fail(errors, `${path} ${error}`);
    },
  };
}

/** Parses with `read`; the message of an error that it throws becomes the validation error. */
export function throwing<T>(read: (value: unknown) => T, schema: JsonSchema = {}): Shape<T> {
  return { schema, read: (value, path, errors) => attempt(() => read(value), errors, `${path}: `) };
}

/** Of any list: an array of holes takes no memory and may have billions of entries. */
const MAX_ENTRIES = 100_000;

export function listOf<T>(item: Shape<T>, { min = 1, max = Infinity } = {}): Shape<readonly T[]> {
  const most = Math.min(max, MAX_ENTRIES);
  const limits = { ...(min > 0 && { minItems: min }), ...(max < Infinity && { maxItems: max }) };
  return {
    schema: { type: 'array', items: item.schema, ...limits },
    read: (value, path, errors) => {
      if (!Array.isArray(value) || value.length < min) {
        const least = min === 0 ? '' : ' with at least one entry';
        return fail(errors, `${path} must be a list${least}, got ${describeValue(value)}`);
      }
      if (value.length > most)
        return fail(errors, `${path} must have at most ${most} entries, got ${value.length}`);
      const read = value.map((entry: unknown, index) => item.read(entry, `${path}[${index}]`, errors));
      return read.filter((entry) => entry !== undefined);
    },
  };
}

/** A list, or a single value, which is read as a list of one. */
export function oneOrMore<T>(item: Shape<T>, max: number): Shape<readonly T[]> {
  const list = listOf(item, { max });
  return {
    schema: { anyOf: [item.schema, list.schema] },
    read: (value, path, errors) => {
      if (Array.isArray(value)) return list.read(value, path, errors);
      const one = item.read(value, path, errors);
      return one === undefined ? undefined : [one];
    },
  };
}

/** Messages name at most this many unknown keys, because searching for similar names takes time. */
const MAX_UNKNOWN_KEYS = 20;
const MAX_KEY_LENGTH = 100;

/** An object whose keys are optional; other keys are errors. `rejected`: messages for known keys that are not allowed. */
export function object<T extends object>(
  shapes: Shapes<T>,
  { rejected = {} }: { rejected?: Readonly<Record<string, string>> } = {},
): Shape<Partial<T>> {
  const known = new Map(Object.entries<Shape<unknown>>(shapes));
  const properties = Object.fromEntries([...known].map(([key, { schema }]) => [key, schema]));
  return {
    schema: { type: 'object', properties, required: [], additionalProperties: false },
    read: (value, path, errors) => {
      if (!isRecord(value)) return fail(errors, `${path} must be an object, got ${describeValue(value)}`);
      const read: Record<string, unknown> = {};
      let unknown = 0;
      for (const [key, entry] of Object.entries(value)) {
        if (entry === undefined) continue;
        const shape = known.get(key);
        const at = `${path}.${key}`;
        if (shape !== undefined) read[key] = shape.read(entry, at, errors);
        else if (Object.hasOwn(rejected, key)) errors.push(`${at} ${rejected[key] ?? ''}`);
        else if (++unknown <= MAX_UNKNOWN_KEYS) {
          const shown = `${path}.${key.slice(0, MAX_KEY_LENGTH)}`;
          errors.push(`${shown} is not an option${didYouMean(key, [...known.keys()])}`);
        }
      }
      if (unknown > MAX_UNKNOWN_KEYS) errors.push(`${path} has ${unknown} unknown options in total`);
      return read as Partial<T>;
    },
  };
}

/** An object with any names as keys, and the same shape for each value. */
export function mapOf<T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return {
    schema: { type: 'object', additionalProperties: shape.schema },
    read: (value, path, errors) => {
      if (!isRecord(value)) return fail(errors, `${path} must be an object, got ${describeValue(value)}`);
      const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
      return Object.fromEntries(
        entries.map(([key, entry]) => [key, shape.read(entry, `${path}.${key}`, errors)]),
      ) as Record<string, T>;
    },
  };
}

/** The same object with required keys; the texts say what to set them to. */
export function requiring<T extends object, K extends keyof T & string>(
  shape: Shape<Partial<T>>,
  required: Readonly<Record<K, string>>,
): Shape<Partial<T> & Pick<T, K>> {
  return {
    schema: { ...shape.schema, required: Object.keys(required) },
    read: (value, path, errors) => {
      const read = shape.read(value, path, errors);
      if (read === undefined) return undefined;
      for (const [key, advice] of Object.entries<string>(required)) {
        if ((value as Record<string, unknown>)[key] === undefined)
          errors.push(`${path}.${key} is missing: ${advice}`);
      }
      return read as Partial<T> & Pick<T, K>;
    },
  };
}

/** An object of strings; `findError` returns what is wrong with an entry. Messages do not show values. */
export function textMap(
  findError: (key: string, value: string) => string | undefined,
): Shape<Record<string, string>> {
  return {
    schema: { type: 'object', additionalProperties: { type: 'string' } },
    read: (value, path, errors) => {
      if (!isRecord(value)) return fail(errors, `${path} must be an object of strings, got ${kindOf(value)}`);
      const entries = Object.entries(value);
      for (const [key, entry] of entries) {
        const error = findPossiblyEmptyTextError(entry) ?? findError(key, entry as string);
        if (error !== undefined) errors.push(`${path}.${key} ${error}`);
      }
      return Object.fromEntries(entries) as Record<string, string>;
    },
  };
}

export const possiblyEmptyText = custom<string>(findPossiblyEmptyTextError, { type: 'string' });

function findPossiblyEmptyTextError(value: unknown): string | undefined {
  return value === '' ? undefined : findTextError(value, Infinity);
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return {
    schema: { anyOf: [shape.schema, { type: 'null' }] },
    read: (value, path, errors) => (value === null ? null : shape.read(value, path, errors)),
  };
}

/** Converts a valid value, or checks it further. Invalid keys of an object are absent from `value`. */
export function refine<T, U>(
  shape: Shape<T>,
  convert: (value: T, path: string, errors: string[]) => U | undefined,
): Shape<U> {
  return {
    schema: shape.schema,
    read: (value, path, errors) => {
      const read = shape.read(value, path, errors);
      return read === undefined ? undefined : convert(read, path, errors);
    },
  };
}

/** Adds a description for the OpenAPI document. */
export function described<T>(shape: Shape<T>, description: string): Shape<T> {
  return { ...shape, schema: { ...shape.schema, description } };
}

/** Reads text from the command line or an environment variable: `'5'` is a number where one is expected, `'a,b'` a list. */
export function fromText<T>(shape: Shape<T>): Shape<T> {
  return {
    ...shape,
    read: (value, path, errors) => shape.read(parseText(value, shape.schema), path, errors),
  };
}

function parseText(value: unknown, schema: JsonSchema): unknown {
  if (typeof value !== 'string') return value;
  const { type, items = {} } = schema.anyOf?.[0] ?? schema;
  if ((type === 'integer' || type === 'number') && /^-?\d+(\.\d+)?$/.test(value)) return Number(value);
  if (type !== 'array') return value;
  const parts = value.split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '').map((part) => parseText(part, items));
}

function attempt<T>(read: () => T, errors: string[], prefix = ''): T | undefined {
  try {
    return read();
  } catch (error) {
    return fail(errors, `${prefix}${(error as Error).message}`);
  }
}

function fail(errors: string[], error: string): undefined {
  errors.push(error);
  return undefined;
}

/** For messages that must not show the value. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return isList(value) ? 'a list' : `a value of type ${typeof value}`;
}
