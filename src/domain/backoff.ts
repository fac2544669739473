export interface RetryPolicy {
  /** Attempts in all, the first one included. */
  max: number;
  /** Delay before the second attempt, in milliseconds. */
  base: number;
  /** The longest delay, in milliseconds. */
  cap: number;
  /** `full`: a random delay up to the computed one; `none`: exactly the computed one. */
  jitter: 'full' | 'none';
}

/** Milliseconds to wait after the given failed attempt (1 is the first). `random` gives a number in [0, 1). */
export function backoffDelay(policy: RetryPolicy, attempt: number, random: () => number): number {
  const delay = Math.min(policy.cap, policy.base * 2 ** (attempt - 1));
  return Math.round(policy.jitter === 'full' ? random() * delay : delay);
}
