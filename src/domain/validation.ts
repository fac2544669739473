import { didYouMean } from './did-you-mean.js';
import { MAX_DURATION_MS, readDuration } from './duration.js';
import { ChronosError, type ErrorCode, redactCredentials } from './errors.js';
import { MAX_NAME_LENGTH, textFault } from './identifiers.js';
import { parseInstant } from './instant.js';

/**
 * Describes one value: an option, a field of a payload or of a stored document. The library and the command line read
 * values with it and HTTP requests are checked against its schema, so that each limit is written once.
 */
export interface Shape<T> {
  /** Returns the value as the program uses it; otherwise adds a sentence that starts with `path` to `errors`. */
  readonly read: (value: unknown, path: string, errors: string[]) => T | undefined;
  /** What a JSON request may contain. `{}` allows anything. */
  readonly schema: JsonSchema;
}

/** A shape for each key. */
export type Shapes<T> = { readonly [K in keyof T]-?: Shape<Exclude<T[K], undefined>> };

/** The values that the shapes read. */
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

/** Throws one error that lists every problem. `where` is what the sentences call the input. */
export function parse<T>(shape: Shape<T>, input: unknown, where: string, code: ErrorCode): T {
  const errors: string[] = [];
  const value = shape.read(input, where, errors);
  if (errors.length > 0 || value === undefined) throw validationError(code, errors);
  return value;
}

/** What is wrong with a stored document; empty if it can be used. */
export function collectErrors(fields: Readonly<Record<string, Shape<unknown>>>, document: unknown): string[] {
  const errors: string[] = [];
  const values = (document ?? {}) as Record<string, unknown>;
  for (const [field, shape] of Object.entries(fields)) shape.read(values[field], field, errors);
  return errors;
}

export function validationError(code: ErrorCode, errors: readonly string[]): ChronosError {
  const [first = ''] = errors;
  const list = errors.map((error) => `\n  - ${error}`).join('');
  return new ChronosError(code, errors.length === 1 ? first : `${errors.length} problems:${list}`);
}

export function integer(minimum: number, maximum: number): Shape<number> {
  return {
    schema: { type: 'integer', minimum, maximum },
    read: (value, path, errors) =>
      Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum
        ? (value as number)
        : fail(errors, `${path} must be a whole number from ${minimum} to ${maximum}, got ${show(value)}`),
  };
}

/** Milliseconds as a number, or text with its unit. `why` says what a longer duration would break. */
export function duration({ min = 0, max = MAX_DURATION_MS, why = '' } = {}): Shape<number> {
  return {
    schema: { anyOf: [{ type: 'number', minimum: min, maximum: max }, DURATION_TEXT] },
    read: (value, path, errors) => {
      const read = readDuration(value);
      if ('fault' in read) return fail(errors, `${path} ${read.fault}`);
      if (read.ms < min) return fail(errors, `${path} must be at least ${min} ms, got ${show(value)}`);
      if (read.ms <= max) return read.ms;
      const reason = why === '' ? '' : `: ${why}`;
      return fail(errors, `${path} must be at most ${max} ms, got ${show(value)}${reason}`);
    },
  };
}

const DURATION_TEXT: JsonSchema = {
  type: 'string',
  maxLength: 30,
  pattern: '^\\d+(\\.\\d+)?\\s*[a-z]+$',
  description: "a text with its unit: '250ms', '10s', '5m', '1h', '3d'; a number is milliseconds",
};

/** A date, or text. Text without a zone is in this time zone. */
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

/** Text that MongoDB can store; not empty. No message contains its value, which may be a secret. */
export function text(maxLength = Infinity): Shape<string> {
  return custom((value) => textFault(value, maxLength), {
    type: 'string',
    minLength: 1,
    ...(maxLength < Infinity && { maxLength }),
    pattern: '^[^\\u0000]*$',
  });
}

export const name = text(MAX_NAME_LENGTH);

export const flag: Shape<boolean> = {
  schema: { type: 'boolean' },
  read: (value, path, errors) =>
    typeof value === 'boolean' ? value : fail(errors, `${path} must be true or false, got ${show(value)}`),
};

export const anything: Shape<unknown> = { schema: {}, read: (value) => value };

export function oneOf<const T extends string>(...choices: readonly T[]): Shape<T> {
  return {
    schema: { type: 'string', enum: choices },
    read: (value, path, errors) => {
      const found = choices.find((choice) => choice === value);
      if (found !== undefined) return found;
      const hint = typeof value === 'string' ? didYouMean(value, choices) : '';
      return fail(errors, `${path} must be one of ${choices.join(', ')}, got ${show(value)}${hint}`);
    },
  };
}

/** Anything `accepts` agrees with; `expected` completes "must be …". */
export function matching<T>(
  expected: string,
  accepts: ((value: unknown) => value is T) | ((value: unknown) => boolean),
  schema: JsonSchema = {},
): Shape<T> {
  return {
    schema,
    read: (value, path, errors) =>
      accepts(value) ? (value as T) : fail(errors, `${path} must be ${expected}, got ${show(value)}`),
  };
}

/** The same for values that must never appear in a message. */
export function secret<T>(expected: string, accepts: (value: unknown) => value is T): Shape<T> {
  return custom((value) => (accepts(value) ? undefined : `must be ${expected} (its value is not shown)`));
}

/** `findError` returns what is wrong, as a phrase that follows the path. */
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

/** What `read` returns; the message of what it throws is the error. */
export function throwing<T>(read: (value: unknown) => T, schema: JsonSchema = {}): Shape<T> {
  return { schema, read: (value, path, errors) => attempt(() => read(value), errors, `${path}: `) };
}

export function listOf<T>(item: Shape<T>, { min = 1, max = Infinity } = {}): Shape<readonly T[]> {
  const limits = { ...(min > 0 && { minItems: min }), ...(max < Infinity && { maxItems: max }) };
  return {
    schema: { type: 'array', items: item.schema, ...limits },
    read: (value, path, errors) => {
      if (!Array.isArray(value) || value.length < min) {
        const least = min === 0 ? '' : ' with at least one entry';
        return fail(errors, `${path} must be a list${least}, got ${show(value)}`);
      }
      if (value.length > max)
        return fail(errors, `${path} must have at most ${max} entries, got ${value.length}`);
      const read = value.map((entry: unknown, index) => item.read(entry, `${path}[${index}]`, errors));
      return read.filter((entry) => entry !== undefined);
    },
  };
}

/** A list, or one value for a list of one. */
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

/** An object with some of these keys and no others. `rejected` explains keys that people try on purpose. */
export function object<T extends object>(
  shapes: Shapes<T>,
  { rejected = {} }: { rejected?: Readonly<Record<string, string>> } = {},
): Shape<Partial<T>> {
  const known = new Map(Object.entries<Shape<unknown>>(shapes));
  const properties = Object.fromEntries([...known].map(([key, { schema }]) => [key, schema]));
  return {
    schema: { type: 'object', properties, required: [], additionalProperties: false },
    read: (value, path, errors) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        return fail(errors, `${path} must be an object, got ${show(value)}`);
      }
      const read: Record<string, unknown> = {};
      for (const [key, entry] of Object.entries(value)) {
        if (entry === undefined) continue;
        const shape = known.get(key);
        const at = `${path}.${key}`;
        if (shape !== undefined) read[key] = shape.read(entry, at, errors);
        else if (Object.hasOwn(rejected, key)) errors.push(`${at} ${rejected[key] ?? ''}`);
        else errors.push(`${at} is not an option${didYouMean(key, [...known.keys()])}`);
      }
      return read as Partial<T>;
    },
  };
}

/** The same object with keys that must be there; the texts say what to set them to. */
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

/** An object whose values are texts that `findError` agrees with. No message contains a value. */
export function textMap(
  findError: (key: string, value: string) => string | undefined,
): Shape<Record<string, string>> {
  return {
    schema: { type: 'object', additionalProperties: { type: 'string' } },
    read: (value, path, errors) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        return fail(errors, `${path} must be an object of strings, got ${kindOf(value)}`);
      }
      for (const [key, entry] of Object.entries(value)) {
        const error = possiblyEmptyTextError(entry) ?? findError(key, entry as string);
        if (error !== undefined) errors.push(`${path}.${key} ${error}`);
      }
      return { ...value };
    },
  };
}

export const possiblyEmptyText = custom<string>(possiblyEmptyTextError, { type: 'string' });

function possiblyEmptyTextError(value: unknown): string | undefined {
  return value === '' ? undefined : textFault(value, Infinity);
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return {
    schema: { anyOf: [shape.schema, { type: 'null' }] },
    read: (value, path, errors) => (value === null ? null : shape.read(value, path, errors)),
  };
}

/** Checks or converts what was read. Keys of an object that failed by themselves are absent. */
export function refine<T, U>(
  shape: Shape<T>,
  to: (value: T, path: string, errors: string[]) => U | undefined,
): Shape<U> {
  return {
    schema: shape.schema,
    read: (value, path, errors) => {
      const read = shape.read(value, path, errors);
      return read === undefined ? undefined : to(read, path, errors);
    },
  };
}

/** Adds a description for the OpenAPI document. */
export function described<T>(shape: Shape<T>, description: string): Shape<T> {
  return { ...shape, schema: { ...shape.schema, description } };
}

/** Reads text from the command line or an environment variable: `'5'` is a number where one is expected, `'a,b'` a list. */
export function fromText<T>(shape: Shape<T>): Shape<T> {
  return { ...shape, read: (value, path, errors) => shape.read(untext(value, shape.schema), path, errors) };
}

function untext(value: unknown, schema: JsonSchema): unknown {
  if (typeof value !== 'string') return value;
  const { type, items = {} } = schema.anyOf?.[0] ?? schema;
  if ((type === 'integer' || type === 'number') && /^-?\d+(\.\d+)?$/.test(value)) return Number(value);
  if (type !== 'array') return value;
  const parts = value.split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '').map((part) => untext(part, items));
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

function show(value: unknown): string {
  // Redacted before it is cut: the cut may remove what a password is recognized by.
  if (typeof value === 'string') return `'${redactCredentials(value).slice(0, 80)}'`;
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

/** For values that must not appear in a message. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return Array.isArray(value) ? 'a list' : `a value of type ${typeof value}`;
}
