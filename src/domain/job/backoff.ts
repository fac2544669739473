import { type Duration, readDuration } from '../duration.js';
import { ChronosError, describeValue, toError } from '../errors.js';
import { isThenable } from '../language.js';

/** When failed attempts are repeated, as it is stored with jobs and schedules. */
export interface RetryPolicy {
  /** Total number of attempts. */
  max: number;
  /** Delay before the second attempt, in milliseconds. */
  base: number;
  /** Upper limit of the delay, in milliseconds. */
  cap: number;
  /** `full`: a random delay up to the computed one. `none`: the computed delay. */
  jitter: 'full' | 'none';
}

/** Functions that decide about retries. They cannot be stored, so they are part of the code: of a handler's options. */
export interface RetryFunctions {
  /**
   * The delay after this failed attempt (1 is the first), instead of the one computed from `base`, `cap` and `jitter`.
   * Default none.
   */
  delay?: (attempt: number, error: Error) => Duration;
  /** Whether to retry after this error; false fails the job immediately. Default: every error is retried. */
  if?: (error: Error) => boolean;
}

export type HandlerRetries = RetryPolicy & RetryFunctions;

type RetryFunctionName = 'retries.delay' | 'retries.if';

/** Called if one of the functions throws or returns something invalid; the policy then applies as without it. */
export type OnRetryFunctionError = (name: RetryFunctionName, error: Error) => void;

/** Milliseconds to wait after this failed attempt (1 is the first). `random` returns a number in [0, 1). */
export function backoffDelay(policy: RetryPolicy, attempt: number, random: () => number): number {
  const delay = Math.min(policy.cap, policy.base * 2 ** (attempt - 1));
  return Math.round(policy.jitter === 'full' ? random() * delay : delay);
}

/** What the function `if` returns for this error; true without one, or if it fails. */
export function isRetryable(retries: RetryFunctions, error: Error, onError: OnRetryFunctionError): boolean {
  const predicate = retries.if;
  if (predicate === undefined) return true;
  const readFlag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined);
  return evaluate('retries.if', () => predicate(error), 'true or false', readFlag, onError) ?? true;
}

/** What the function `delay` returns, in milliseconds. The computed backoff without one, or if it fails. */
export function retryDelay(
  retries: HandlerRetries,
  attempt: number,
  error: Error,
  random: () => number,
  onError: OnRetryFunctionError,
): number {
  const compute = retries.delay;
  if (compute === undefined) return backoffDelay(retries, attempt, random);
  const readMs = (value: unknown): number | undefined => {
    const read = readDuration(value);
    return 'error' in read ? undefined : read.ms;
  };
  const expected = "a duration: milliseconds or a text like '30s'";
  const delay = evaluate('retries.delay', () => compute(attempt, error), expected, readMs, onError);
  return delay ?? backoffDelay(retries, attempt, random);
}

/** The result of one of the functions; undefined if it throws or returns something that `read` does not accept. */
function evaluate<T>(
  name: RetryFunctionName,
  call: () => unknown,
  expected: string,
  read: (value: unknown) => T | undefined,
  onError: OnRetryFunctionError,
): T | undefined {
  try {
    const returned = call();
    const value = read(returned);
    if (value !== undefined) return value;
    const isPromise = isThenable(returned);
    // A rejection that nobody handles would end the process.
    if (isPromise) returned.then(undefined, () => undefined);
    const got = isPromise ? 'a promise' : describeValue(returned);
    onError(name, new ChronosError('INVALID_OPTIONS', `${name} must return ${expected}, got ${got}`));
  } catch (thrown) {
    onError(name, toError(thrown));
  }
  return undefined;
}
