import type { StandardSchemaV1 } from '@standard-schema/spec';
import { ChronosError } from '../domain/errors.js';
import { UnrecoverableError } from '../domain/job/control-flow.js';
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
  const size = bsonSize(copied.copy);
  if (size > maxBytes) {
    throw new ChronosError(
      'INVALID_PAYLOAD',
      `${what} has ${size} bytes, more than maxPayloadBytes (${maxBytes}): store the data elsewhere and pass a reference`,
    );
  }
  return copied.copy;
}

/** Returns the output of the handler's schema. Throws one INVALID_PAYLOAD error with every issue. */
export async function applySchema(
  taskType: string,
  schema: StandardSchemaV1,
  payload: unknown,
): Promise<unknown> {
  const checked = await schema['~standard'].validate(payload);
  if (checked.issues === undefined) return checked.value;
  const issues = checked.issues.map(({ path, message }) => `\n  - ${showPath(path)}: ${message}`);
  throw new UnrecoverableError(
    'INVALID_PAYLOAD',
    `the payload for '${taskType}' does not match its schema:${issues.join('')}`,
  );
}

/** Parses the payload of a built-in handler. Its error is not retried. */
export function parsePayload<T>(shape: Shape<T>, payload: unknown, expected: string): T {
  const errors: string[] = [];
  const value = shape.read(payload, 'payload', errors);
  if (errors.length === 0 && value !== undefined) return value;
  throw new UnrecoverableError('INVALID_PAYLOAD', `${errors.join('; ')}. Expected: ${expected}`);
}

function showPath(path: StandardSchemaV1.Issue['path']): string {
  const keys = (path ?? []).map((segment) => (typeof segment === 'object' ? segment.key : segment));
  return keys.reduce<string>(
    (shown, key) => shown + (typeof key === 'number' ? `[${key}]` : `.${String(key)}`),
    'payload',
  );
}
