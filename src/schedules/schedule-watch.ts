import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { ScheduleNews } from '../store/watch-schedules.js';
import type { Store } from '../store/store.js';

/** What a server says that has no change streams: a standalone one. */
const NOT_A_REPLICA_SET = 40_573;
/** It may have become one. */
const ASK_AGAIN = 3_600_000;

/**
 * Wakes whoever materialises when a definition changes. A hint only: without a stream, or while it is broken, the
 * poll finds the same change later.
 */
export class ScheduleWatch extends PeriodicService {
  readonly name = 'watch schedules';
  readonly #store: Pick<Store, 'watchSchedules'>;
  readonly #onChange: () => void;
  #stream: AsyncGenerator<ScheduleNews, void> | undefined;
  #closing = new AbortController();

  constructor(clock: Clock, events: EventBus, store: Pick<Store, 'watchSchedules'>, onChange: () => void) {
    super(clock, events);
    this.#store = store;
    this.#onChange = onChange;
  }

  override async stop(): Promise<void> {
    this.#closing.abort();
    await super.stop();
    this.#stream = undefined;
  }

  /** Waits for the next news; one round after the other follows the stream. */
  async runOnce(): Promise<number> {
    if (this.#closing.signal.aborted) this.#closing = new AbortController();
    this.#stream ??= this.#store.watchSchedules(this.#closing.signal);
    try {
      const { value: news, done } = await this.#stream.next();
      // Also when it opens: what changed before that was not seen.
      if (news === 'open' || news === 'change') this.#onChange();
      if (done === true) this.#stream = undefined;
      return 0;
    } catch (error) {
      this.#stream = undefined;
      if ((error as { code?: unknown }).code === NOT_A_REPLICA_SET) return ASK_AGAIN;
      throw error;
    }
  }
}
