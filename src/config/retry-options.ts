import type { RetryPolicy } from '../domain/backoff.js';
import type { Duration } from '../domain/duration.js';
import { duration, oneOf, record, wholeNumber, type Reader } from './readers.js';

/** Retries as people write them: times with their unit, anything left out takes the default. */
export interface RetryOptions {
  /** Attempts in all, the first one included. Default 3. */
  max?: number;
  /** Delay before the second attempt; doubles with each further one. Default `'1s'`. */
  base?: Duration;
  /** The longest delay. Default `'60s'`. */
  cap?: Duration;
  /** `full` takes a random delay up to the computed one, `none` exactly that. Default `full`. */
  jitter?: 'full' | 'none';
}

export const DEFAULT_RETRIES = {
  max: 3,
  base: 1000,
  cap: 60_000,
  jitter: 'full',
} as const satisfies RetryPolicy;

const readRetries = record<RetryPolicy>({
  max: wholeNumber(1, 1000),
  base: duration(),
  cap: duration(),
  jitter: oneOf('full', 'none'),
});

/** A base longer than the default cap raises it; a cap below the base, given with it, is a mistake. */
export const retryReader: Reader<Partial<RetryPolicy>> = (value, path, faults) => {
  const read = readRetries(value, path, faults);
  if (read?.base === undefined) return read;
  if (read.cap === undefined) return read.base > DEFAULT_RETRIES.cap ? { ...read, cap: read.base } : read;
  if (read.cap >= read.base) return read;
  faults.push(`${path}.cap (${read.cap} ms) must not be shorter than ${path}.base (${read.base} ms)`);
  return undefined;
};
