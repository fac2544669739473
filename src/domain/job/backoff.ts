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

/** Milliseconds to wait after this failed attempt (1 is the first). `random` returns a number in [0, 1). */
export function backoffDelay(policy: RetryPolicy, attempt: number, random: () => number): number {
  const delay = Math.min(policy.cap, policy.base * 2 ** (attempt - 1));
  return Math.round(policy.jitter === 'full' ? random() * delay : delay);
}
