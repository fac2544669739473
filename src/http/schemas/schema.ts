import type { StoredError } from '../../domain/errors.js';
import type { Page } from '../../config/query-options.js';
import { STATE_NAMES } from '../../domain/job/state.js';
import { described, type JsonSchema, object, type Shape } from '../../domain/validation.js';
import type { Count } from '../../store/jobs/counts.js';

// Schemas of responses. Request schemas come from the shapes in src/config, which the library validates options with.

/** A JSON schema for values of type T. T exists only for the compiler, which checks that routes and schemas agree. */
export interface SchemaOf<T> extends JsonSchema {
  readonly valueType?: T;
}

type Properties<T> = { readonly [K in keyof T]-?: SchemaOf<Exclude<T[K], undefined>> };

export function string(description?: string): SchemaOf<string> {
  return { type: 'string', ...(description && { description }) };
}

export function enumOf<const T extends string>(...choices: readonly T[]): SchemaOf<T> {
  return { type: 'string', enum: choices };
}

export function number(description?: string): SchemaOf<number> {
  return { type: 'number', ...(description && { description }) };
}

export function boolean(description?: string): SchemaOf<boolean> {
  return { type: 'boolean', ...(description && { description }) };
}

export function date(description?: string): SchemaOf<Date> {
  return { type: 'string', format: 'date-time', ...(description && { description }) };
}

export const anyValue: SchemaOf<unknown> = {};

/** An object whose properties are not described. */
export function openObject<T extends object>(description?: string): SchemaOf<T> {
  return { type: 'object', additionalProperties: true, ...(description && { description }) };
}

export function list<T>(items: SchemaOf<T>): SchemaOf<T[]> {
  return { type: 'array', items };
}

export function dictionary<T>(values: SchemaOf<T>): SchemaOf<Record<string, T>> {
  return { type: 'object', additionalProperties: values };
}

export function nullable<T>(schema: SchemaOf<T>): SchemaOf<T | null> {
  const { type, enum: choices, valueType: _, ...rest } = schema;
  if (typeof type !== 'string') throw new Error('nullable() needs a schema with one type');
  return { ...rest, type: [type, 'null'], ...(choices && { enum: [...choices, null] }) };
}

/** Every property is required, except `optional` ones. Other properties of the value are not sent. */
export function response<T extends object>(
  properties: Properties<T>,
  optional: readonly (keyof T & string)[] = [],
): SchemaOf<T> {
  const required = Object.keys(properties).filter((key) => !(optional as readonly string[]).includes(key));
  return { type: 'object', properties, required, additionalProperties: false };
}

export function nullableObject<T extends object | null>(
  properties: Properties<NonNullable<T>>,
): SchemaOf<NonNullable<T> | null> {
  return nullable(response<NonNullable<T>>(properties));
}

export function objectList<T extends object>(properties: Properties<T>): SchemaOf<T[]> {
  return list(response<T>(properties));
}

/** The `{id}` of a path. */
export function idParam(shape: Shape<string>, description: string): SchemaOf<{ id: string }> {
  return { ...object({ id: described(shape, description) }).schema, required: ['id'] };
}

export const emptyRequest: SchemaOf<object> = object({}).schema;

export const state = enumOf(...STATE_NAMES);

export function page<T>(item: SchemaOf<T>): SchemaOf<Page<T>> {
  const next = nullable(string('`after` of the next page; null if this is the last'));
  return response<Page<T>>({ items: list(item), next });
}

export const count = response<Count>({
  count: number(),
  atLeast: boolean('true: there are more than were counted'),
});

export const storedError = nullableObject<StoredError>({
  name: string(),
  message: string(),
  code: nullable(string()),
  stack: nullable(string()),
});
