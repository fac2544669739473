/** The only source of time. In production `now()` is the database's time; tests use a manual clock. */
export interface Clock {
  now(): Date;
  /** Milliseconds since an arbitrary origin, which all threads of a process share. Never jumps. */
  monotonic(): number;
  /** Resolves after `ms`, or as soon as the signal is aborted. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
