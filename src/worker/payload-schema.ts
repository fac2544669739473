import type { StandardSchemaV1 } from '@standard-schema/spec';
import { Refused } from './refused.js';

/** What the schema makes of the payload; throws one error that names every fault. */
export async function applySchema(
  taskType: string,
  schema: StandardSchemaV1,
  payload: unknown,
): Promise<unknown> {
  const checked = await schema['~standard'].validate(payload);
  if (checked.issues === undefined) return checked.value;
  const faults = checked.issues.map(({ path, message }) => `  - ${showPath(path)}: ${message}`);
  throw new Refused(
    'INVALID_PAYLOAD',
    `the payload for '${taskType}' does not fit its schema:\n${faults.join('\n')}`,
  );
}

function showPath(path: StandardSchemaV1.Issue['path']): string {
  const keys = (path ?? []).map((segment) => (typeof segment === 'object' ? segment.key : segment));
  return keys.reduce<string>(
    (shown, key) => shown + (typeof key === 'number' ? `[${key}]` : `.${String(key)}`),
    'payload',
  );
}
