/** The only source of time. In production `now()` is the database's time; tests use one they move by hand. */
export interface Clock {
  now(): Date;
  /** Milliseconds from an arbitrary origin; never jumps. The same origin in every thread of a process. */
  monotonic(): number;
  /** Resolves after `ms`, or as soon as the signal is aborted. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
