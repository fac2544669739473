import { mongo } from 'mongoose';

const DUPLICATE_KEY = 11_000;

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof mongo.MongoServerError && error.code === DUPLICATE_KEY;
}

/** Not primary any more, or shutting down. The driver labels these as retryable only on writes it could retry itself. */
const STEPPING_DOWN = new Set([91, 189, 10_107, 11_600, 11_602, 13_435, 13_436]);

/**
 * True when waiting helps: the reply of a write was lost, its write concern was not met, or there was nobody to
 * send it to. Whether the write took effect is not known then.
 */
export function isUncertain(error: unknown): boolean {
  return (
    error instanceof mongo.MongoNetworkError ||
    // Every connection was busy. The driver does not export its class.
    (error instanceof mongo.MongoError && error.name === 'MongoWaitQueueTimeoutError') ||
    (error instanceof mongo.MongoServerError && STEPPING_DOWN.has(Number(error.code))) ||
    error instanceof mongo.MongoServerSelectionError ||
    error instanceof mongo.MongoWriteConcernError ||
    // The driver then says nothing about the single writes, not even which of them were refused.
    (error instanceof mongo.MongoBulkWriteError && error.result.getWriteConcernError() !== undefined) ||
    (error instanceof mongo.MongoError &&
      (error.hasErrorLabel('RetryableWriteError') || error.hasErrorLabel('PoolRequestedRetry')))
  );
}
