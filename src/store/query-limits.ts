import { mongo } from 'mongoose';
import { ChronosError } from '../domain/errors.js';

/** The time limit of reads that a person waits for, in milliseconds. Shorter than the socket timeout. */
export const MAX_QUERY_MS = 5000;

/** Counts stop here, so that they stay cheap. */
export const MAX_COUNTED = 10_000;

const MAX_TIME_EXPIRED = 50;
const BAD_VALUE = 2;

const DEFAULT_ADVICE = 'try again when the server has less to do';

/** True for the error that `withTimeLimit` throws for a read that took too long. */
export function isQueryTimeout(error: unknown): boolean {
  return error instanceof ChronosError && error.code === 'QUERY_TOO_SLOW';
}

/** Runs a read that has `maxTimeMS` and an index hint. Its errors become ones that say what to do. */
export async function withTimeLimit<T>(
  what: string,
  read: () => Promise<T>,
  advice = DEFAULT_ADVICE,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof mongo.MongoServerError)) throw error;
    if (error.code === MAX_TIME_EXPIRED) {
      throw new ChronosError('QUERY_TOO_SLOW', `${what} took longer than ${MAX_QUERY_MS} ms: ${advice}`, {
        cause: error,
      });
    }
    if (error.code === BAD_VALUE && error.message.includes('hint provided does not correspond')) {
      throw new ChronosError(
        'NOT_INSTALLED',
        `${what} needs an index that is missing in the database: run install(), which creates it`,
        { cause: error },
      );
    }
    throw error;
  }
}
