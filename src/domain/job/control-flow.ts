import { type Duration, parseDuration } from '../duration.js';
import { ChronosError } from '../errors.js';

// Two copies of this package may be loaded, in which case `instanceof` fails: these errors carry a brand.
const CANCEL = Symbol.for('chronos.CancelJob');
const SNOOZE = Symbol.for('chronos.SnoozeJob');

/** Thrown by a handler: the job ends CANCELLED, no attempt is counted. */
export class CancelJob extends Error {
  override readonly name = 'CancelJob';
  readonly [CANCEL] = true;

  constructor(reason = 'cancelled by its handler') {
    super(reason);
  }
}

/** Thrown by a handler: the job runs again after the delay, no attempt is counted. */
export class SnoozeJob extends Error {
  override readonly name = 'SnoozeJob';
  readonly [SNOOZE] = true;
  /** Milliseconds. */
  readonly delay: number;

  constructor(delay: Duration) {
    super('snoozed by its handler');
    this.delay = parseDuration(delay, 'the delay of SnoozeJob');
  }
}

export function isCancelJob(thrown: unknown): thrown is CancelJob {
  return isBranded(thrown, CANCEL);
}

export function isSnoozeJob(thrown: unknown): thrown is SnoozeJob {
  return isBranded(thrown, SNOOZE);
}

function isBranded(thrown: unknown, brand: symbol): boolean {
  try {
    return typeof thrown === 'object' && thrown !== null && brand in thrown;
  } catch {
    // A proxy may throw here.
    return false;
  }
}

/**
 * A job that can never succeed: it fails without a retry. Recognized by its class and not by its code, because a handler
 * may throw errors with the same code that do not concern its own job.
 */
export class UnrecoverableError extends ChronosError {}

export function isUnrecoverableError(thrown: unknown): thrown is Error {
  try {
    return thrown instanceof UnrecoverableError;
  } catch {
    // A proxy may throw here.
    return false;
  }
}
