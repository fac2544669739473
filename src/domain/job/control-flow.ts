import { type Duration, parseDuration } from '../duration.js';
import { ChronosError } from '../errors.js';
import { tryOr } from '../language.js';

// Branded, because `instanceof` fails when two copies of this package are loaded.
const CANCEL = Symbol.for('chronos.CancelJob');
const SNOOZE = Symbol.for('chronos.SnoozeJob');

/** Throw it in a handler to end the job as CANCELLED. It does not count as an attempt. */
export class CancelJob extends Error {
  override readonly name = 'CancelJob';
  readonly [CANCEL] = true;

  constructor(reason = 'cancelled by its handler') {
    super(reason);
  }
}

/** Throw it in a handler to run the job again after the delay. It does not count as an attempt. */
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
  return tryOr(() => typeof thrown === 'object' && thrown !== null && brand in thrown, false);
}

/**
 * The job can never succeed: it fails without a retry. Recognized by class and not by code, because a handler may throw
 * errors with the same code that do not concern its own job.
 */
export class UnrecoverableError extends ChronosError {}

export function isUnrecoverableError(thrown: unknown): thrown is Error {
  return tryOr(() => thrown instanceof UnrecoverableError, false);
}
