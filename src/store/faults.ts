import { mongo } from 'mongoose';

const DUPLICATE_KEY = 11_000;

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof mongo.MongoServerError && error.code === DUPLICATE_KEY;
}

/** True when nothing is known about the effect of a write: the reply was lost, or its write concern was not met. */
export function isUncertain(error: unknown): boolean {
  return (
    error instanceof mongo.MongoNetworkError ||
    error instanceof mongo.MongoServerSelectionError ||
    error instanceof mongo.MongoWriteConcernError ||
    // The driver then says nothing about the single writes, not even which of them were refused.
    (error instanceof mongo.MongoBulkWriteError && error.result.getWriteConcernError() !== undefined) ||
    (error instanceof mongo.MongoError &&
      (error.hasErrorLabel('RetryableWriteError') || error.hasErrorLabel('PoolRequestedRetry')))
  );
}
