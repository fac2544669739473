import assert from 'node:assert/strict';
import type { ChronosError } from '../../src/index.js';

/** The error that a call rejects with. */
export function rejectionOf(call: Promise<unknown>): Promise<ChronosError> {
  return call.then(
    () => assert.fail('it was accepted'),
    (error: unknown) => error as ChronosError,
  );
}
