import { mongo } from 'mongoose';
import { ChronosError } from '../domain/errors.js';

/** What a person waits for ends after this many milliseconds, well before the socket's time-out. */
export const MOST_TIME = 5000;

const BAD_VALUE = 2;
const MAX_TIME_EXPIRED = 50;

/** The answer to a read with a time limit and a hint, or an error that says what to do about it. */
export async function bounded<T>(what: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof mongo.MongoServerError)) throw error;
    if (error.code === MAX_TIME_EXPIRED) {
      throw new ChronosError(
        'QUERY_TOO_SLOW',
        `${what} took longer than ${MOST_TIME} ms: ask for less, with a status, a schedule or the beginning of an id`,
        { cause: error },
      );
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
