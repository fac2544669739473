import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import type { Store } from '../store/store.js';
import type { ChangeListener } from './change-listener.js';
import type { JobRunner } from './job-runner.js';

/** A claim of this process may have taken the job in the moment in which it was cancelled: the next read finds it. */
const RECHECK_MS = 1000;

export interface CancellationPollerDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'findCancelRequests'>;
  runner: Pick<JobRunner, 'tokens' | 'has' | 'cancel'>;
  changes: Pick<ChangeListener, 'subscribe' | 'intervalMultiplier'>;
  options: Pick<ResolvedOptions, 'pollInterval'>;
}

/** Finds requests of other processes to cancel jobs that are in flight here. */
export class CancellationPoller extends PeriodicService {
  readonly name = 'poll cancellations';
  readonly #deps: CancellationPollerDeps;

  constructor(deps: CancellationPollerDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    deps.changes.subscribe({
      onChanges: ({ cancelled }) => {
        for (const jobId of cancelled) this.#onRequest(jobId);
      },
      onMissedChanges: () => {
        this.wake();
      },
    });
  }

  /** Cancels the job if it runs here. */
  cancelLocal(jobId: string, reason: string | null): void {
    this.#deps.runner.cancel(jobId, reason);
    this.wakeWithin(RECHECK_MS);
  }

  async runOnce(): Promise<number> {
    const { store, runner, changes, options } = this.#deps;
    const { tokens } = runner;
    if (tokens.size > 0) {
      for (const [jobId, reason] of await store.findCancelRequests([...tokens.keys()]))
        runner.cancel(jobId, reason, tokens.get(jobId));
    }
    return options.pollInterval * changes.intervalMultiplier;
  }

  /** The request may be old, and the job may have run again since: only the database knows. */
  #onRequest(jobId: string): void {
    if (this.#deps.runner.has(jobId)) this.wake();
    else this.wakeWithin(RECHECK_MS);
  }
}
