import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { Store } from '../store/store.js';
import type { JobRunner } from './job-runner.js';

/** Looks for requests to cancel the jobs in flight here that were made in other processes. */
export class CancelWatch extends PeriodicService {
  readonly name = 'watch for cancellations';
  readonly #store: Pick<Store, 'findCancelRequests'>;
  readonly #runner: JobRunner;
  readonly #interval: () => number;

  constructor(
    clock: Clock,
    events: EventBus,
    store: Pick<Store, 'findCancelRequests'>,
    runner: JobRunner,
    interval: () => number,
  ) {
    super(clock, events);
    this.#store = store;
    this.#runner = runner;
    this.#interval = interval;
  }

  async runOnce(): Promise<number> {
    const { tokens } = this.#runner;
    if (tokens.size > 0) {
      for (const [jobId, reason] of await this.#store.findCancelRequests([...tokens.keys()]))
        this.#runner.cancel(jobId, reason, tokens.get(jobId));
    }
    return this.#interval();
  }
}
