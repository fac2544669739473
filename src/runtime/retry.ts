import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';

/** Tries of a write that MongoDB rejects, as opposed to one that does not reach it. */
export const MAX_REJECTIONS = 3;

/** Pauses between tries, in milliseconds: they double from `first` up to `max`. */
export interface Backoff {
  readonly first: number;
  readonly max: number;
}

export interface RetryLoopOptions extends Backoff {
  clock: Clock;
  /** Ends the wait between two tries; the last error is thrown. */
  signal: AbortSignal;
  /** False: the error is thrown at once. */
  shouldRetry: (error: unknown, failures: number) => boolean;
  onFailure?: (error: unknown, failures: number, retryIn: number) => void;
}

export interface PollOptions extends Backoff {
  clock: Clock;
  /** Milliseconds until the poll gives up. */
  timeout: number;
  signal?: AbortSignal;
}

/** The pause after so many failures in a row. */
export function retryDelay({ first, max }: Backoff, failures: number): number {
  return Math.min(max, first * 2 ** (failures - 1));
}

/** Repeats `work` until it succeeds, is not worth retrying, or is aborted. */
export async function retry<T>(work: () => Promise<T>, options: RetryLoopOptions): Promise<T> {
  const { clock, signal, shouldRetry, onFailure } = options;
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      const retryIn = retryDelay(options, failures);
      onFailure?.(error, failures, retryIn);
      if (!shouldRetry(error, failures)) throw error;
      await clock.sleep(retryIn, signal);
      if (signal.aborted) throw error;
    }
  }
}

/** Repeats `check` until it returns something. Returns undefined after the timeout, or when aborted. */
export async function pollUntil<T>(
  check: () => Promise<T | undefined>,
  { clock, timeout, signal, ...backoff }: PollOptions,
): Promise<T | undefined> {
  const end = clock.monotonic() + timeout;
  for (let checks = 1; ; checks++) {
    const found = await check();
    const left = end - clock.monotonic();
    if (found !== undefined || left <= 0) return found;
    await clock.sleep(Math.min(retryDelay(backoff, checks), left), signal);
    if (signal?.aborted) return undefined;
  }
}

const MAX_CONFLICTS = 20;

/** Repeats a compare-and-set until nobody else was first; `attempt` returns undefined when somebody was. */
export async function retryOnConflict<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 1; tries <= MAX_CONFLICTS; tries++) {
    const result = await attempt();
    if (result !== undefined) return result;
  }
  throw new ChronosError(
    'WRONG_STATE',
    `${what} was changed by others ${MAX_CONFLICTS} times during this call: try again`,
  );
}
