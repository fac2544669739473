import type { Clock } from '../domain/clock.js';

/** What became of a daemon. */
export interface DaemonReport {
  ticks: number;
  overruns: number;
  /** It was told to stop, or too many ticks in a row took too long. */
  reason: 'stopped' | 'overruns';
}

export interface DaemonParts {
  clock: Clock;
  /** Milliseconds between two ticks. */
  interval: number;
  /** Ends after this many overruns in a row. */
  maxOverruns: number;
  tick: () => Promise<void>;
  onOverrun: (overrun: { tick: number; late: number; inARow: number }) => void;
  signal: AbortSignal;
}

/**
 * Ticks at the multiples of its interval, by the clock. Each target is computed from the calendar and not from when the
 * last tick ended, so nothing adds up and the phase is never lost. A tick that takes as
 * long as the interval is an overrun: what it missed is not made up for, the next tick follows at once.
 */
export async function runDaemon(parts: DaemonParts): Promise<DaemonReport> {
  const { clock, interval, maxOverruns, tick, onOverrun, signal } = parts;
  const now = (): number => clock.now().getTime();
  const report: DaemonReport = { ticks: 0, overruns: 0, reason: 'stopped' };
  let inARow = 0;
  while (!signal.aborted) {
    const began = now();
    const multipleAfter = (instant: number): number => (Math.floor(instant / interval) + 1) * interval;
    let target = multipleAfter(began);
    report.ticks++;
    await tick();
    const ended = now();
    if (ended - began >= interval && !signal.aborted) {
      report.overruns++;
      onOverrun({ tick: report.ticks, late: ended - target, inARow: ++inARow });
      if (inARow >= maxOverruns) return { ...report, reason: 'overruns' };
    } else inARow = 0;
    // The clock was far ahead and is corrected: nobody waits for a target of the wrong time.
    if (target - ended > 2 * interval) target = multipleAfter(ended);
    // A timer may fire a little early.
    while (!signal.aborted && now() < target) await clock.sleep(target - now(), signal);
  }
  return report;
}
