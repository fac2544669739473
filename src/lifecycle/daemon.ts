import { type DaemonOptions, parseDaemonOptions } from '../config/method-options.js';
import type { Clock } from '../domain/clock.js';
import type { SchedulerLifecycle } from './lifecycle.js';
import { executePass } from './pass.js';

/** How many passes a daemon made, and why it ended. */
export interface DaemonReport {
  ticks: number;
  overruns: number;
  /** `overruns`: too many passes in a row took longer than the interval. */
  reason: 'stopped' | 'overruns';
}

/** Runs a pass at every multiple of the interval until it is stopped; then stops the scheduler. */
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
            await lifecycle.trackPass(executePass(lifecycle, { batch }, { skipInvalidDefinitions: true }));
          } catch (error) {
            if (!signal.aborted) events.reportError('run pass', error);
          }
        },
        onOverrun: (overrun) => events.emit('daemon:overrun', overrun),
      }),
    { ticks: 0, overruns: 0, reason: 'stopped' },
  );
}

export interface TickOptions {
  clock: Clock;
  /** Milliseconds between two ticks. */
  interval: number;
  /** The loop ends after this many overruns in a row. */
  maxOverruns: number;
  tick: () => Promise<void>;
  onOverrun: (overrun: { tick: number; late: number; inARow: number }) => void;
  signal: AbortSignal;
}

/**
 * Ticks at the multiples of the interval. Each target is computed from the clock and not from when the last tick
 * ended, so delays do not add up. A tick that takes at least the interval is an overrun: the next tick follows
 * immediately, and missed ticks are dropped.
 */
export async function runTicks(options: TickOptions): Promise<DaemonReport> {
  const { clock, interval, maxOverruns, tick, onOverrun, signal } = options;
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
    // The clock was set back during the tick, so the target is too far in the future.
    if (target - ended > 2 * interval) target = nextMultiple(ended);
    // A loop, because a timer may fire a little early.
    while (!signal.aborted && now() < target) await clock.sleep(target - now(), signal);
  }
  return report;
}
