import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';

/** How often to try a write that MongoDB rejects. One that does not reach MongoDB is retried without this limit. */
export const MAX_REJECTIONS = 3;

/** Pauses between tries, in milliseconds: they double from `first` up to `max`. */
interface Backoff {
  readonly first: number;
  readonly max: number;
}

interface RetryLoopOptions extends Backoff {
  clock: Clock;
  /** Aborting it ends the wait between two tries and throws the last error. */
  signal: AbortSignal;
  /** False: the error is thrown immediately. `retryIn`: milliseconds until the next try. */
  shouldRetry: (error: unknown, failures: number, retryIn: number) => boolean;
  /** Called before the wait; not for the error that is thrown. */
  onRetry?: (error: unknown, failures: number, retryIn: number) => void;
}

interface PollOptions extends Backoff {
  clock: Clock;
  /** Milliseconds until the poll gives up. */
  timeout: number;
  signal?: AbortSignal;
}

/** The pause after the given number of failures in a row. */
export function retryDelay({ first, max }: Backoff, failures: number): number {
  return Math.min(max, first * 2 ** (failures - 1));
}

/** Repeats `work` until it succeeds, `shouldRetry` returns false, or the signal is aborted. */
export async function retry<T>(work: () => Promise<T>, options: RetryLoopOptions): Promise<T> {
  const { clock, signal, shouldRetry, onRetry } = options;
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      const retryIn = retryDelay(options, failures);
      if (!shouldRetry(error, failures, retryIn)) throw error;
      onRetry?.(error, failures, retryIn);
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

/** Repeats a compare-and-set until it succeeds. `attempt` returns undefined on a conflict. */
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
