import type { ServerResponse } from 'node:http';
import type { Clock } from '../domain/clock.js';

export interface Wanted {
  /** Where the answer goes. (The request itself is over when its body is read.) */
  to: Pick<ServerResponse, 'destroyed' | 'writableFinished' | 'once' | 'off'>;
  stopping: AbortSignal;
  /** Milliseconds. */
  longest: number;
  clock: Clock;
}

/**
 * Does the work with a signal that is aborted when nobody waits for the answer any more, the worker stops, or time is
 * up. Nothing of it outlives the work: the signal that says that the worker stops lives as long as the process.
 */
export async function whileWanted<T>(
  { to, stopping, longest, clock }: Wanted,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const unwanted = new AbortController();
  const abort = (): void => unwanted.abort();
  const closed = (): void => {
    if (!to.writableFinished) abort();
  };
  if (stopping.aborted || to.destroyed) abort();
  stopping.addEventListener('abort', abort);
  to.once('close', closed);
  void clock.sleep(longest, unwanted.signal).then(abort);
  try {
    return await work(unwanted.signal);
  } finally {
    // Ends the sleep.
    abort();
    to.off('close', closed);
    stopping.removeEventListener('abort', abort);
  }
}
