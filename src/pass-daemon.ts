import { readDaemonOptions, type DaemonOptions } from './config/call-options.js';
import type { ResolvedOptions } from './config/options.js';
import type { Clock } from './domain/clock.js';
import { toError, withoutCredentials } from './domain/errors.js';
import type { Lifetime } from './lifetime.js';
import { runOnce } from './run-once.js';
import type { EventBus } from './runtime/event-bus.js';
import { runDaemon, type DaemonParts, type DaemonReport } from './schedules/daemon.js';

/** A pass at every multiple of an interval, until it is told to stop; then everything is closed. */
export async function runPassDaemon(
  lifetime: Lifetime,
  events: EventBus,
  { timezone, shutdownGrace }: Pick<ResolvedOptions, 'timezone' | 'shutdownGrace'>,
  options: DaemonOptions,
): Promise<DaemonReport> {
  const { interval, maxOverruns, batch } = readDaemonOptions(options);
  /** A pass that fails as a whole is reported, unless it was told to stop; the next tick tries again. */
  const tick = async (signal: AbortSignal): Promise<void> => {
    try {
      await runOnce(lifetime, events, timezone, { batch }, true);
    } catch (thrown) {
      if (signal.aborted) return;
      const error = withoutCredentials(toError(thrown));
      events.emit('worker:trouble', { operation: 'run a pass', error, failures: 1, retryIn: 0 });
    }
  };
  const onOverrun: DaemonParts['onOverrun'] = (overrun) => {
    events.emit('daemon:overrun', overrun);
  };
  const work = (clock: Clock, signal: AbortSignal): Promise<DaemonReport> =>
    runDaemon({ clock, interval, maxOverruns, signal, tick: () => tick(signal), onOverrun });
  return lifetime.daemon(shutdownGrace, work, { ticks: 0, overruns: 0, reason: 'stopped' });
}
