import { mongo } from 'mongoose';

export const DUPLICATE_KEY = 11_000;

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof mongo.MongoServerError && error.code === DUPLICATE_KEY;
}

/**
 * `bulkWrite` and `insertMany` wrap whatever fails as a whole, such as a lost connection, in an error that looks
 * like a report on single writes. This is what really happened.
 */
function cause(error: unknown): unknown {
  if (!(error instanceof mongo.MongoBulkWriteError)) return error;
  const inner: unknown = error.errorResponse;
  return inner instanceof Error ? inner : error;
}

/** True for a report on single writes: those it does not name took effect. */
export function isWriteReport(error: unknown): error is mongo.MongoBulkWriteError {
  return (
    error instanceof mongo.MongoBulkWriteError && [error.writeErrors].flat().length > 0 && !isUncertain(error)
  );
}

/**
 * Not primary any more, shutting down, cut off, or a view that is not there yet just after an election. The driver
 * labels these as retryable only on writes it could retry itself.
 */
const PASSING = new Set([6, 7, 89, 91, 133, 134, 189, 262, 9001, 10_107, 11_600, 11_602, 13_435, 13_436]);

/**
 * True when waiting helps: the reply of a write was lost, its write concern was not met, or there was nobody to
 * send it to. Whether the write took effect is not known then.
 */
export function isUncertain(thrown: unknown): boolean {
  const error = cause(thrown);
  if (!(error instanceof mongo.MongoError)) return false;
  return (
    error instanceof mongo.MongoNetworkError ||
    error instanceof mongo.MongoServerSelectionError ||
    error instanceof mongo.MongoWriteConcernError ||
    // Every connection was busy. The driver does not export its class.
    error.name === 'MongoWaitQueueTimeoutError' ||
    (error instanceof mongo.MongoServerError && PASSING.has(Number(error.code))) ||
    // The driver then says nothing about the single writes, not even which of them were refused.
    (error instanceof mongo.MongoBulkWriteError && error.result.getWriteConcernError() !== undefined) ||
    error.hasErrorLabel('RetryableWriteError') ||
    error.hasErrorLabel('PoolRequestedRetry')
  );
}
