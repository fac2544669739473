import type { ChildProcess } from 'node:child_process';
import { EXIT } from '../process/exit.js';
import type { Changes } from './changes.js';

export interface SupervisorParts {
  start: () => ChildProcess;
  changes: Pick<Changes, 'next'>;
  say: (sentence: string) => void;
  /** Ends it, and its child first. */
  signal: AbortSignal;
}

/**
 * Keeps one child process, and starts another in its place after every change: the old one stops gracefully first, so
 * that what it runs comes to its end. One that ends by itself, such as over a typing mistake, is started again by the
 * next change. Resolves to the exit code of the last one.
 */
export async function supervise({ start, changes, say, signal }: SupervisorParts): Promise<number> {
  for (;;) {
    const child = start();
    const exited = exitOf(child);
    const changed = changes.next(signal);
    const ended = await Promise.race([exited, changed.then(() => undefined)]);
    if (ended !== undefined && !signal.aborted)
      say(`worker ended with exit code ${ended}; waiting for a change`);
    const file = await changed;
    if (ended === undefined) child.kill('SIGTERM');
    if (file !== undefined) say(`${file} changed: starting again`);
    const code = await exited;
    if (signal.aborted) return code;
  }
}

function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(EXIT.wrong));
    child.once('exit', (code) => resolve(code ?? EXIT.wrong));
  });
}
