import { type DaemonOptions, parseDaemonOptions } from '../config/method-options.js';
import type { Clock } from '../domain/clock.js';
import type { SchedulerLifecycle, StopReport } from './lifecycle.js';
import { executePass } from './pass.js';

/** How many passes a daemon made, and why it ended. */
export interface DaemonReport extends TickReport, StopReport {}

/** Runs a pass at every multiple of the interval until it is stopped; then stops the scheduler. */
export async function runDaemon(
  lifecycle: SchedulerLifecycle,
  options: DaemonOptions,
): Promise<DaemonReport> {
  const { interval, maxOverruns, batch } = parseDaemonOptions(options);
  const { events } = lifecycle.deps;
  return lifecycle.runUntilStopped<TickReport>(
    ({ clock, outages }, signal) =>
      runTicks({
        ...{ clock, interval, maxOverruns, signal },
        tick: async () => {
          const failuresBefore = outages.failures;
          await executePass(lifecycle, { batch }, { skipInvalidDefinitions: true });
          return { hadOutage: outages.failures > failuresBefore };
        },
        onFailure: (error, failure) => events.reportError('run pass', error, failure),
        onRecovery: (failures) => events.emit('worker:recovered', { operation: 'run pass', failures }),
        onOverrun: (overrun) => events.emit('daemon:overrun', overrun),
      }),
    { ticks: 0, overruns: 0, reason: 'stopped' },
  );
}

interface TickReport {
  ticks: number;
  overruns: number;
  /** `overruns`: too many passes in a row took longer than the interval. */
  reason: 'stopped' | 'overruns';
}

export interface TickOptions {
  clock: Clock;
  /** Milliseconds between two ticks. */
  interval: number;
  /** The loop ends after this many overruns in a row. */
  maxOverruns: number;
  /** `hadOutage`: it had to wait for the database, so its duration says nothing about the load. */
  tick: () => Promise<{ hadOutage: boolean }>;
  /** The tick threw. `failures`: how many in a row; `retryIn`: milliseconds until the next tick. */
  onFailure: (error: unknown, failure: { failures: number; retryIn: number }) => void;
  /** A tick succeeded after this many failures. */
  onRecovery: (failures: number) => void;
  onOverrun: (overrun: { tick: number; late: number; inARow: number }) => void;
  signal: AbortSignal;
}

/**
 * Ticks at the multiples of the interval. Each target is computed from the clock and not from when the last tick
 * ended, so delays do not add up. A tick that takes at least the interval is an overrun: the next tick follows
 * immediately, and missed ticks are dropped. A tick that failed or had an outage is no overrun, however long it took:
 * with `maxOverruns`, an outage would otherwise end the daemon.
 */
export async function runTicks(options: TickOptions): Promise<TickReport> {
  const { clock, interval, maxOverruns, tick, onFailure, onRecovery, onOverrun, signal } = options;
  const now = (): number => clock.now().getTime();
  const nextMultiple = (instant: number): number => (Math.floor(instant / interval) + 1) * interval;
  const report: TickReport = { ticks: 0, overruns: 0, reason: 'stopped' };
  let inARow = 0;
  let failures = 0;
  while (!signal.aborted) {
    const began = now();
    let target = nextMultiple(began);
    report.ticks++;
    let mayOverrun = false;
    try {
      const { hadOutage } = await tick();
      mayOverrun = !hadOutage;
      if (failures > 0) onRecovery(failures);
      failures = 0;
    } catch (error) {
      if (!signal.aborted) onFailure(error, { failures: ++failures, retryIn: Math.max(0, target - now()) });
    }
    const ended = now();
    if (ended - began >= interval && mayOverrun && !signal.aborted) {
      report.overruns++;
      onOverrun({ tick: report.ticks, late: ended - target, inARow: ++inARow });
      if (inARow >= maxOverruns) return { ...report, reason: 'overruns' };
    } else if (mayOverrun) {
      inARow = 0;
    }
    // The clock was set back during the tick, so the target is too far in the future.
    if (target - ended > 2 * interval) target = nextMultiple(ended);
    // A loop, because a timer may fire a little early.
    while (!signal.aborted && now() < target) await clock.sleep(target - now(), signal);
  }
  return report;
}
