import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { StartedJob } from '../store/jobs/running.js';
import type { Store } from '../store/store.js';

/** Most jobs have ended by then; only those that are still running are marked. */
const MARK_AFTER_MS = 25;

/**
 * Marks prefetched jobs RUNNING. They start in memory while they are still QUEUED in the database; those that run for a
 * while are marked together. If a mark is lost and the process crashes, the job counts as not started.
 */
export class StartedMarker {
  readonly #clock: Clock;
  readonly #events: EventBus;
  readonly #store: Pick<Store, 'markStarted'>;
  readonly #closed = new AbortController();
  /** Started and not marked yet, by job id. */
  readonly #started = new Map<string, StartedJob>();
  #marking: Promise<void> | undefined;

  constructor(clock: Clock, events: EventBus, store: Pick<Store, 'markStarted'>) {
    this.#clock = clock;
    this.#events = events;
    this.#store = store;
  }

  add(job: StartedJob): void {
    this.#started.set(job.jobId, job);
    this.#startMarking();
  }

  /** The job has an outcome, and settling it stores its start as well. */
  drop(jobId: string): void {
    this.#started.delete(jobId);
  }

  /** Resolves when the marking in progress has ended. */
  async whenFlushed(): Promise<void> {
    await this.#marking;
  }

  async close(): Promise<void> {
    this.#started.clear();
    this.#closed.abort();
    await this.whenFlushed();
  }

  #startMarking(): void {
    if (this.#started.size === 0 || this.#closed.signal.aborted) return;
    this.#marking ??= this.#mark().finally(() => {
      this.#marking = undefined;
      this.#startMarking();
    });
  }

  async #mark(): Promise<void> {
    await this.#clock.sleep(MARK_AFTER_MS, this.#closed.signal);
    const jobs = [...this.#started.values()];
    this.#started.clear();
    if (jobs.length === 0) return;
    try {
      await this.#store.markStarted(jobs);
    } catch (error) {
      this.#events.reportError('mark jobs started', error);
    }
  }
}
