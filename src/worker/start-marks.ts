import type { Clock } from '../domain/clock.js';
import { toError } from '../domain/errors.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Begun } from '../store/begin.js';
import type { Store } from '../store/store.js';

/** A buffered job that has no outcome by then is marked as running. Milliseconds; most are through long before. */
const MARK_AFTER = 25;

/**
 * Buffered jobs that have started in memory and are QUEUED in the database: those that run for a while are marked
 * RUNNING there, together. Best effort: a mark that is lost makes a crash look like a job that had not started, which
 * counts nothing.
 */
export class StartMarks {
  readonly #clock: Clock;
  readonly #events: EventBus;
  readonly #store: Pick<Store, 'markBegun'>;
  readonly #abandoned = new AbortController();
  /** Those that are not marked; none is in flight twice in one process. */
  readonly #begun = new Map<string, Begun>();
  #marking: Promise<void> | undefined;

  constructor(clock: Clock, events: EventBus, store: Pick<Store, 'markBegun'>) {
    this.#clock = clock;
    this.#events = events;
    this.#store = store;
  }

  add(begun: Begun): void {
    this.#begun.set(begun.jobId, begun);
    this.#startMarking();
  }

  /** The job has an outcome: that it started is written with it. */
  drop(jobId: string): void {
    this.#begun.delete(jobId);
  }

  /** Resolves when nothing is left to mark. */
  async flushed(): Promise<void> {
    await this.#marking;
  }

  /** Nothing more is marked. */
  abandon(): void {
    this.#begun.clear();
    this.#abandoned.abort();
  }

  #startMarking(): void {
    this.#marking ??= this.#mark().finally(() => {
      this.#marking = undefined;
      // One that began between the last look and this.
      if (this.#begun.size > 0) this.#startMarking();
    });
  }

  async #mark(): Promise<void> {
    while (this.#begun.size > 0 && !this.#abandoned.signal.aborted) {
      await this.#clock.sleep(MARK_AFTER, this.#abandoned.signal);
      const begun = [...this.#begun.values()];
      this.#begun.clear();
      if (begun.length === 0) return;
      try {
        await this.#store.markBegun(begun);
      } catch (thrown) {
        const [operation, error] = ['mark jobs as running', toError(thrown)];
        this.#events.emit('worker:trouble', { operation, error, failures: 1, retryIn: 0 });
      }
    }
  }
}
