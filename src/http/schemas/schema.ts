/** JSON Schema 2020-12, as far as it is used here: what OpenAPI 3.1 is made of. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly anyOf?: readonly Schema[];
}

/** A schema for values of this type. The type is only for the compiler: it keeps routes and views to what is documented. */
export interface SchemaOf<T> extends Schema {
  readonly means?: T;
}

type Properties<T> = { readonly [K in keyof T]-?: SchemaOf<Exclude<T[K], undefined>> };

/** Nothing that MongoDB or a log would stumble over. */
const NO_NUL = '^[^\\u0000]*$';

export function text(maxLength: number, description?: string): SchemaOf<string> {
  return { type: 'string', minLength: 1, maxLength, pattern: NO_NUL, ...(description && { description }) };
}

/** Text of an answer: whatever is stored. */
export function shown(description?: string): SchemaOf<string> {
  return { type: 'string', ...(description && { description }) };
}

export function oneOf<const T extends string>(...choices: readonly T[]): SchemaOf<T> {
  return { type: 'string', enum: choices };
}

export function integer(minimum: number, maximum: number, description?: string): SchemaOf<number> {
  return { type: 'integer', minimum, maximum, ...(description && { description }) };
}

export function amount(description?: string): SchemaOf<number> {
  return { type: 'number', ...(description && { description }) };
}

export function flag(description?: string): SchemaOf<boolean> {
  return { type: 'boolean', ...(description && { description }) };
}

export function date(description?: string): SchemaOf<Date> {
  return { type: 'string', format: 'date-time', ...(description && { description }) };
}

export function anything(description?: string): SchemaOf<unknown> {
  return description === undefined ? {} : { description };
}

/** An object of an answer whose inside others decide on. */
export function free<T extends object>(description?: string): SchemaOf<T> {
  return { type: 'object', additionalProperties: true, ...(description && { description }) };
}

export function list<T>(items: SchemaOf<T>, maxItems?: number): SchemaOf<T[]> {
  return { type: 'array', items, ...(maxItems !== undefined && { maxItems }) };
}

export function dictionary<T>(values: SchemaOf<T>): SchemaOf<Record<string, T>> {
  return { type: 'object', additionalProperties: values };
}

export function nullable<T>(schema: SchemaOf<T>): SchemaOf<T | null> {
  const { type, enum: choices, means: _, ...rest } = schema;
  if (typeof type !== 'string') throw new Error('only what has one type can be null as well');
  return { ...rest, type: [type, 'null'], ...(choices && { enum: [...choices, null] }) };
}

export function either<A, B>(one: SchemaOf<A>, other: SchemaOf<B>): SchemaOf<A | B> {
  return { anyOf: [one, other] };
}

/** An answer: every property of the view is there, except those that may be missing. Anything else is not sent. */
export function answer<T extends object>(
  properties: Properties<T>,
  optional: readonly (keyof T & string)[] = [],
): SchemaOf<T> {
  const required = Object.keys(properties).filter((key) => !(optional as readonly string[]).includes(key));
  return { type: 'object', properties, required, additionalProperties: false };
}

/** What comes with a request: these properties and no others. */
export function input<T extends object>(
  properties: Properties<T>,
  required: readonly (keyof T & string)[] = [],
): SchemaOf<T> {
  return { type: 'object', properties, required, additionalProperties: false };
}
