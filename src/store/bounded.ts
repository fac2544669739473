import { mongo } from 'mongoose';
import { ChronosError } from '../domain/errors.js';

/** What a person waits for ends after this many milliseconds, well before the socket's time-out. */
export const MOST_TIME = 5000;

/** More are not counted: by then it is clear that there are many. */
export const MOST_COUNTED = 10_000;

const MAX_TIME_EXPIRED = 50;
const BAD_VALUE = 2;

/** What helps where a read has no filter that could be narrower. */
const LATER = 'ask again when the server has less to do';

/** Whether `bounded` gave up. */
export function isTooSlow(error: unknown): boolean {
  return error instanceof ChronosError && error.code === 'QUERY_TOO_SLOW';
}

/** The answer to a read with a time limit and a hint, or an error that says what to do about it. */
export async function bounded<T>(what: string, read: () => Promise<T>, advice = LATER): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof mongo.MongoServerError)) throw error;
    if (error.code === MAX_TIME_EXPIRED) {
      throw new ChronosError('QUERY_TOO_SLOW', `${what} took longer than ${MOST_TIME} ms: ${advice}`, {
        cause: error,
      });
    }
    if (error.code === BAD_VALUE && error.message.includes('hint provided does not correspond')) {
      throw new ChronosError(
        'NOT_INSTALLED',
        `${what} needs an index that the database does not have: run install(), which makes what is missing`,
        { cause: error },
      );
    }
    throw error;
  }
}
