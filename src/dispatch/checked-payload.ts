import { ChronosError } from '../domain/errors.js';
import { copyPlainData } from '../domain/payload.js';
import { bsonSize } from '../store/bson.js';

/** A copy that MongoDB stores and gives back exactly; throws INVALID_PAYLOAD with every reason why it cannot. */
export function checkedPayload(what: string, payload: unknown, maxBytes: number): unknown {
  const copied = copyPlainData(payload, 'payload');
  if ('faults' in copied) {
    const faults = copied.faults.map(({ path, fault }) => `  - ${path} ${fault}`);
    throw new ChronosError('INVALID_PAYLOAD', `${what} cannot be stored:\n${faults.join('\n')}`);
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
