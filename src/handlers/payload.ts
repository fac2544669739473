import type { StandardSchemaV1 } from '@standard-schema/spec';
import { ChronosError, toError } from '../domain/errors.js';
import { UnrecoverableChronosError } from '../domain/job/control-flow.js';
import { copyPlainData } from '../domain/plain-data.js';
import type { Shape } from '../domain/validation.js';
import { bsonSize } from '../store/bson.js';

/** Returns a copy that MongoDB stores and returns unchanged. Throws INVALID_PAYLOAD with every problem of the payload. */
export function checkedPayload(what: string, payload: unknown, maxBytes: number): unknown {
  const copied = copyPlainData(payload, 'payload');
  if ('errors' in copied) {
    const errors = copied.errors.map((error) => `\n  - ${error}`);
    throw new ChronosError('INVALID_PAYLOAD', `${what} cannot be stored:${errors.join('')}`);
  }
  const size = measuredSize(what, copied.copy);
  if (size > maxBytes) {
    throw new ChronosError(
      'INVALID_PAYLOAD',
      `${what} has ${size} bytes, more than maxPayloadBytes (${maxBytes}): store the data elsewhere and pass a reference`,
    );
  }
  return copied.copy;
}

function measuredSize(what: string, payload: unknown): number {
  try {
    return bsonSize(payload);
  } catch (thrown) {
    const message = `${what} cannot be stored: ${toError(thrown).message}`;
    throw new ChronosError('INVALID_PAYLOAD', message, { cause: thrown });
  }
}

/** The output of the handler's schema, or one INVALID_PAYLOAD error with every issue. */
export async function applySchema(
  taskType: string,
  schema: StandardSchemaV1,
  payload: unknown,
): Promise<{ value: unknown } | { error: ChronosError }> {
  const checked = await schema['~standard'].validate(payload);
  if (checked.issues === undefined) return { value: checked.value };
  const issues = checked.issues.map(({ path, message }) => `\n  - ${showPath(path)}: ${message}`);
  const message = `the payload for '${taskType}' does not match its schema:${issues.join('')}`;
  return { error: new ChronosError('INVALID_PAYLOAD', message) };
}

/** Throws INVALID_PAYLOAD if the payload does not match the handler's schema. */
export async function assertMatchesSchema(
  taskType: string,
  schema: StandardSchemaV1,
  payload: unknown,
): Promise<void> {
  const applied = await applySchema(taskType, schema, payload);
  if ('error' in applied) throw applied.error;
}

/** Parses the payload of a built-in handler. Its error is not retried. */
export function parsePayload<T>(shape: Shape<T>, payload: unknown, expected: string): T {
  const errors: string[] = [];
  const value = shape.read(payload, 'payload', errors);
  if (errors.length === 0 && value !== undefined) return value;
  throw new UnrecoverableChronosError('INVALID_PAYLOAD', `${errors.join('; ')}. Expected: ${expected}`);
}

function showPath(path: StandardSchemaV1.Issue['path']): string {
  const keys = (path ?? []).map((segment) => (typeof segment === 'object' ? segment.key : segment));
  return keys.reduce<string>(
    (shown, key) => shown + (typeof key === 'number' ? `[${key}]` : `.${String(key)}`),
    'payload',
  );
}
