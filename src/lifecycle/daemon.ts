import { type DaemonOptions, parseDaemonOptions } from '../config/method-options.js';
import type { Clock } from '../domain/clock.js';
import type { SchedulerLifecycle } from './lifecycle.js';
import { runPass } from './pass.js';

/** Why and after how many passes a daemon ended. */
export interface DaemonReport {
  ticks: number;
  overruns: number;
  /** It was stopped, or too many passes in a row took longer than the interval. */
  reason: 'stopped' | 'overruns';
}

/** Makes a pass at every multiple of the interval until it is stopped; then closes everything. */
export async function runDaemon(
  lifecycle: SchedulerLifecycle,
  options: DaemonOptions,
): Promise<DaemonReport> {
  const { interval, maxOverruns, batch } = parseDaemonOptions(options);
  const { events } = lifecycle.deps;
  return lifecycle.runUntilStopped<DaemonReport>(
    ({ clock }, signal) =>
      runTicks({
        ...{ clock, interval, maxOverruns, signal },
        tick: async () => {
          try {
            await runPass(lifecycle, { batch }, { isRepeated: true });
          } catch (error) {
            if (!signal.aborted) events.reportError('run pass', error);
          }
        },
        onOverrun: (overrun) => {
          events.emit('daemon:overrun', overrun);
        },
      }),
    { ticks: 0, overruns: 0, reason: 'stopped' },
  );
}

export interface TickOptions {
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
 * Ticks at the multiples of the interval. Each target is computed from the clock and not from when the last tick
 * ended, so delays do not add up. A tick that takes as long as the interval is an overrun: the next tick follows at
 * once, and ticks that were missed are not repeated.
 */
export async function runTicks({
  clock,
  interval,
  maxOverruns,
  tick,
  onOverrun,
  signal,
}: TickOptions): Promise<DaemonReport> {
  const now = (): number => clock.now().getTime();
  const nextMultiple = (instant: number): number => (Math.floor(instant / interval) + 1) * interval;
  const report: DaemonReport = { ticks: 0, overruns: 0, reason: 'stopped' };
  let inARow = 0;
  while (!signal.aborted) {
    const began = now();
    let target = nextMultiple(began);
    report.ticks++;
    await tick();
    const ended = now();
    if (ended - began >= interval && !signal.aborted) {
      report.overruns++;
      onOverrun({ tick: report.ticks, late: ended - target, inARow: ++inARow });
      if (inARow >= maxOverruns) return { ...report, reason: 'overruns' };
    } else {
      inARow = 0;
    }
    // The clock was far ahead and has been corrected: the target belongs to the wrong time.
    if (target - ended > 2 * interval) target = nextMultiple(ended);
    // A loop, because a timer may fire a little early.
    while (!signal.aborted && now() < target) await clock.sleep(target - now(), signal);
  }
  return report;
}
