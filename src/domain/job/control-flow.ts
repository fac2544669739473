import { type Duration, parseDuration, readDuration } from '../duration.js';
import { ChronosError } from '../errors.js';
import { tryOr } from '../language.js';

// Branded, because `instanceof` fails when two copies of this package are loaded.
const CANCEL = Symbol.for('chronos.CancelJob');
const SNOOZE = Symbol.for('chronos.SnoozeJob');
const RETRY_AFTER = Symbol.for('chronos.RetryAfter');
const UNRECOVERABLE = Symbol.for('chronos.UnrecoverableError');

/** Throw it in a handler to end the job as CANCELLED. It does not count as an attempt. */
export class CancelJob extends Error {
  override readonly name: string = 'CancelJob';
  readonly [CANCEL] = true;

  constructor(reason = 'cancelled by its handler') {
    super(reason);
  }
}

/** Throw it in a handler to run the job again after the delay. It does not count as an attempt. */
export class SnoozeJob extends Error {
  override readonly name: string = 'SnoozeJob';
  readonly [SNOOZE] = true;
  /** Milliseconds. */
  readonly delay: number;

  constructor(delay: Duration) {
    super('snoozed by its handler');
    this.delay = parseDuration(delay, 'the delay of SnoozeJob');
  }
}

/**
 * Throw it in a handler to fail the attempt and run the next one after exactly this delay, for example the one of a
 * `Retry-After` header. It counts as an attempt; the last attempt fails the job with this error.
 */
export class RetryAfter extends Error {
  override readonly name: string = 'RetryAfter';
  readonly [RETRY_AFTER] = true;
  /** Milliseconds. */
  readonly delay: number;

  constructor(delay: Duration, message?: string, options?: { cause?: unknown }) {
    const ms = parseDuration(delay, 'the delay of RetryAfter');
    super(message ?? `failed, to be retried after ${ms} ms`, options);
    this.delay = ms;
  }
}

/** Throw it in a handler to end the job as FAILED immediately, without a retry. */
export class UnrecoverableError extends Error {
  override readonly name: string = 'UnrecoverableError';
  readonly [UNRECOVERABLE] = true;
}

/** An unrecoverable error with a code: a built-in handler can never run this payload. */
export class UnrecoverableChronosError extends ChronosError {
  readonly [UNRECOVERABLE] = true;
}

export function isCancelJob(thrown: unknown): thrown is CancelJob {
  return isBranded(thrown, CANCEL);
}

export function isSnoozeJob(thrown: unknown): thrown is SnoozeJob {
  return isBranded(thrown, SNOOZE);
}

export function isRetryAfter(thrown: unknown): thrown is RetryAfter {
  return isBranded(thrown, RETRY_AFTER);
}

/** Only what is thrown itself counts, not its cause. */
export function isUnrecoverable(thrown: unknown): boolean {
  return isBranded(thrown, UNRECOVERABLE);
}

/** The delay in milliseconds; 0 if it is invalid, as in a subclass or another version of the package. */
export function delayOf(thrown: SnoozeJob | RetryAfter): number {
  const read = readDuration(tryOr(() => thrown.delay, 0));
  return 'error' in read ? 0 : read.ms;
}

function isBranded(thrown: unknown, brand: symbol): boolean {
  return tryOr(() => typeof thrown === 'object' && thrown !== null && brand in thrown, false);
}
