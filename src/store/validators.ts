import type { Schema } from 'mongoose';

/**
 * The collections that every job is written to several times. Checking each field each time would cost a fifth of all
 * throughput, so that only those are checked that workers find and claim jobs by.
 */
const CHECKED_FIELDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['Job', ['taskType', 'queue', 'priority', 'status', 'nextRunAt', 'fence']],
  ['Execution', []],
]);

export interface JsonSchema {
  title: string;
  required?: string[];
  properties: Record<string, object>;
}

/** Everything that the documents of a model have. */
export function wholeSchema(name: string, schema: Pick<Schema, 'toJSONSchema'>): JsonSchema {
  const generated = schema.toJSONSchema({ useBsonType: true }) as Omit<JsonSchema, 'title'>;
  return { title: `Chronos ${name}`, ...generated };
}

/** What the server checks with every write. */
export function validatorFor(name: string, schema: Pick<Schema, 'toJSONSchema'>): JsonSchema {
  const whole = wholeSchema(name, schema);
  const fields = CHECKED_FIELDS.get(name);
  if (fields === undefined) return whole;
  const { title, properties } = whole;
  const checked = Object.entries(properties).filter(([field]) => fields.includes(field));
  return {
    title,
    ...(fields.length > 0 && { required: [...fields] }),
    properties: Object.fromEntries(checked),
  };
}
