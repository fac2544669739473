import type { ServerResponse } from 'node:http';

export interface Wanted {
  /** Where the answer goes. (The request itself is over when its body is read.) */
  to: Pick<ServerResponse, 'destroyed' | 'writableFinished' | 'once' | 'off'>;
  stopping: AbortSignal;
  /** Milliseconds. */
  longest: number;
}

/**
 * Does the work with a signal that is aborted when nobody waits for the answer any more, the worker stops, or time is
 * up. Nothing of it outlives the work: the signal that says that the worker stops lives as long as the process.
 */
export async function whileWanted<T>(
  { to, stopping, longest }: Wanted,
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
  const timer = setTimeout(abort, longest);
  try {
    return await work(unwanted.signal);
  } finally {
    clearTimeout(timer);
    to.off('close', closed);
    stopping.removeEventListener('abort', abort);
  }
}
