import type { Clock } from '../domain/clock.js';
import type { LogTarget } from '../runtime/logger.js';
import { EXIT } from './exit.js';

/** npm and a terminal may both send the same Ctrl-C: signals this close together are one. */
const SAME_SIGNAL_MS = 500;

/**
 * The first signal stops gracefully (`forever` does that); a second one ends the process at once. To be called right
 * before somebody listens for the first: until then a signal ends the process by itself, and after this it would not.
 */
export function exitOnSecondSignal(clock: Pick<Clock, 'monotonic'>, log: LogTarget): void {
  let first: number | undefined;
  const count = (signal: string): void => {
    const now = clock.monotonic();
    if (first === undefined) {
      first = now;
      log.info({}, `${signal}: stopping; once more to stop at once`);
    } else if (now - first > SAME_SIGNAL_MS) {
      log.warn({}, `${signal} again: stopping at once`);
      process.exit(EXIT.wrong);
    }
  };
  process.on('SIGINT', count).on('SIGTERM', count);
}
