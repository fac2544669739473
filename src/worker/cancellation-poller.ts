import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import type { Store } from '../store/store.js';
import type { ChangeListener } from './change-listener.js';
import type { InFlightJobs } from './in-flight-jobs.js';
import type { JobRunner } from './job-runner.js';

/** This process may have claimed the job at the moment it was cancelled; a second read after this time finds it. */
const RECHECK_MS = 1000;

export interface CancellationPollerDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'findCancelRequests'>;
  inFlight: Pick<InFlightJobs, 'tokens' | 'has'>;
  runner: Pick<JobRunner, 'cancel'>;
  changes: Pick<ChangeListener, 'subscribe' | 'intervalMultiplier'>;
  options: Pick<ResolvedOptions, 'pollInterval'>;
}

/** Finds jobs in flight here whose cancellation another process has requested. */
export class CancellationPoller extends PeriodicService {
  readonly name = 'poll cancellations';
  readonly #deps: CancellationPollerDeps;

  constructor(deps: CancellationPollerDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    deps.changes.subscribe({
      // A request may be older than the current run of the job, so the database is read before anything is cancelled.
      onChanges: ({ cancelled }) => {
        for (const jobId of cancelled) this.wakeWithin(deps.inFlight.has(jobId) ? 0 : RECHECK_MS);
      },
      onMissedChanges: () => this.wake(),
    });
  }

  /** Cancels the job if it runs here. */
  cancelLocal(jobId: string, reason: string | null): void {
    this.#deps.runner.cancel(jobId, reason);
    this.wakeWithin(RECHECK_MS);
  }

  async runOnce(): Promise<number> {
    const { store, inFlight, runner, changes, options } = this.#deps;
    const { tokens } = inFlight;
    if (tokens.size > 0) {
      for (const [jobId, reason] of await store.findCancelRequests([...tokens.keys()]))
        runner.cancel(jobId, reason, tokens.get(jobId));
    }
    return options.pollInterval * changes.intervalMultiplier;
  }
}
