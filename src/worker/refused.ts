import { ChronosError } from '../domain/errors.js';

/**
 * Why a job can never succeed, however often it is tried: it fails at once. Told from what handlers throw by its
 * class, because a handler may meet errors of the same code that have nothing to do with its own job.
 */
export class Refused extends ChronosError {}

export function isRefused(thrown: unknown): thrown is Error {
  try {
    return thrown instanceof Refused;
  } catch {
    // A proxy may refuse the question.
    return false;
  }
}
