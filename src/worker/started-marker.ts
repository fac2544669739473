import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { StartedJob } from '../store/jobs/running.js';
import { retryDelay } from '../runtime/retry.js';
import type { Store } from '../store/store.js';

/** Most jobs have ended by then; only those that are still running are marked. */
const MARK_AFTER_MS = 25;
const MARK_RETRY = { first: 250, max: 5000 };

/**
 * Marks prefetched jobs RUNNING. They start in memory while they are still QUEUED in the database; those that run for a
 * while are marked together. A write that fails is retried as long as the job runs. If the process crashes before the
 * job is marked, the job counts as not started.
 */
export class StartedMarker {
  readonly #clock: Clock;
  readonly #events: EventBus;
  readonly #store: Pick<Store, 'markStarted'>;
  readonly #closed = new AbortController();
  /** Started and not marked yet, by job id. */
  readonly #started = new Map<string, StartedJob>();
  #marking: Promise<void> | undefined;
  #failures = 0;

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
    const delay = this.#failures === 0 ? MARK_AFTER_MS : retryDelay(MARK_RETRY, this.#failures);
    await this.#clock.sleep(delay, this.#closed.signal);
    const jobs = [...this.#started.values()];
    if (jobs.length === 0) return;
    try {
      await this.#store.markStarted(jobs);
      this.#failures = 0;
      this.#events.reportSuccess('mark jobs started');
      // A job that ended meanwhile may already have started again, under another token.
      for (const job of jobs) if (this.#started.get(job.jobId) === job) this.#started.delete(job.jobId);
    } catch (error) {
      this.#failures++;
      this.#events.reportFailure('mark jobs started', error, retryDelay(MARK_RETRY, this.#failures));
    }
  }
}
