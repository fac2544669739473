import { ChronosError } from '../domain/errors.js';
import { isDriverError } from './mongo-errors.js';

/** The time limit of reads that a person waits for. Shorter than the socket timeout. */
export const MAX_QUERY_MS = 5000;

/** Counting stops here, so that it stays cheap. */
export const MAX_COUNTED = 10_000;

const MAX_TIME_EXPIRED = 50;
const BAD_VALUE = 2;

/** True for the error of `withTimeLimit` when a read takes too long. */
export function isQueryTimeout(error: unknown): boolean {
  return error instanceof ChronosError && error.code === 'QUERY_TOO_SLOW';
}

/** Runs a read that sets `maxTimeMS` or an index hint. If it times out or the index is missing, the error says what to do. */
export async function withTimeLimit<T>(
  what: string,
  read: () => Promise<T>,
  advice = 'try again when the server has less to do',
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!isDriverError(error, 'MongoServerError')) throw error;
    if (error.code === MAX_TIME_EXPIRED) {
      const message = `${what} took longer than ${MAX_QUERY_MS} ms: ${advice}`;
      throw new ChronosError('QUERY_TOO_SLOW', message, { cause: error });
    }
    if (error.code === BAD_VALUE && error.message.includes('hint provided does not correspond')) {
      const message = `${what} needs an index that is missing in the database: run install(), which creates it`;
      throw new ChronosError('NOT_INSTALLED', message, { cause: error });
    }
    throw error;
  }
}
