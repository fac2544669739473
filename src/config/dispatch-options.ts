import type { RetryPolicy } from '../domain/backoff.js';
import type { Duration } from '../domain/duration.js';
import { parseInstant, type Instant } from '../domain/instant.js';
import { checkKey } from '../domain/names.js';
import { DEFAULT_PRIORITY, DEFAULT_QUEUE } from './options.js';
import { optionsError } from './options-error.js';
import { retryReader, type RetryOptions } from './retry-options.js';
import { duration, flag, name, record, throwing, wholeNumber } from './readers.js';

/** How one job is dispatched. */
export interface DispatchOptions {
  /** Run it this long from now. */
  delay?: Duration;
  /** Run it at this instant; text without a zone is in the application's time zone. */
  at?: Instant;
  /** 0–1000, lower is more urgent. Default 100. */
  priority?: number;
  /** Default `'default'`. */
  queue?: string;
  /** Becomes the job's id: the same key twice returns the job that is there. */
  key?: string;
  /** Overrides the handler's `retries`. */
  retries?: RetryOptions;
  /** Overrides the handler's `timeout` of one attempt. */
  timeout?: Duration;
  /** Longest time from the first start, over all attempts. Default none. */
  maxRunningTime?: Duration;
  /** Create it PENDING; it waits for `unhold`. */
  hold?: boolean;
}

export interface ResolvedDispatchOptions {
  delay?: number;
  at?: Date;
  priority: number;
  queue: string;
  key?: string;
  retries?: Partial<RetryPolicy>;
  timeout?: number;
  maxRunningTime?: number;
  hold: boolean;
}

export function resolveDispatchOptions(input: unknown, timezone: string): ResolvedDispatchOptions {
  const faults: string[] = [];
  const readers = record<Required<ResolvedDispatchOptions>>({
    delay: duration(),
    at: throwing((value) => parseInstant(value, timezone, 'it')),
    priority: wholeNumber(0, 1000),
    queue: name(),
    key: throwing((value) => {
      checkKey(value);
      return value;
    }),
    retries: retryReader,
    timeout: duration({ min: 1 }),
    maxRunningTime: duration({ min: 1 }),
    hold: flag(),
  });
  const read = readers(input, 'dispatch options', faults) ?? {};
  if (read.at !== undefined && read.delay !== undefined) {
    faults.push('dispatch options.at and dispatch options.delay exclude each other: give one of them');
  }
  if (faults.length > 0) throw optionsError('INVALID_ARGUMENT', faults);
  return { priority: DEFAULT_PRIORITY, queue: DEFAULT_QUEUE, hold: false, ...read };
}
