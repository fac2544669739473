import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { Pace } from '../runtime/pace.js';
import { PeriodicService } from '../runtime/service.js';
import type { Store } from '../store/store.js';
import type { News } from '../store/watch.js';

/** What a server says that has no change streams: a standalone one. */
const NOT_A_REPLICA_SET = 40_573;
/** It may have become one. */
const ASK_AGAIN = 3_600_000;
/** How often a busy process asks itself whether it still is, in milliseconds. */
const BUSY_PAUSE = 500;
/** Without a stream while busy, what it would have told is found within this time, in milliseconds. */
const BUSY_INTERVAL = 1000;
/**
 * With a stream that tells everything, polls only find what it lost: they come this many times more rarely. With the
 * default interval a worker with nothing to do then asks twice a minute, and what was lost waits for half a minute.
 */
const PATIENCE = 6;

export interface WatchParts {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'watch'>;
  queues: readonly string[];
  taskTypes: () => readonly string[];
  pollInterval: number;
  /** There is more than enough to do: nobody needs news of jobs, and the server reads its whole log for each stream. */
  isBusy: () => boolean;
  onNews: (news: News) => void;
  /** Something may have happened that the stream does not tell: everybody looks for themselves. */
  onGap: () => void;
}

interface Stream {
  readonly news: ReturnType<Store['watch']>;
  readonly closing: AbortController;
}

/**
 * Follows what other processes do, through one change stream for everybody in this process. A hint only: without a
 * stream, or while it is broken, the polls find the same later.
 */
export class Watch extends PeriodicService {
  readonly name = 'watch for changes';
  readonly #parts: WatchParts;
  readonly #pace: Pace;
  #stream: Stream | undefined;
  #healthy = false;
  #isResting = false;

  constructor(parts: WatchParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
    this.#pace = new Pace(parts.clock);
  }

  /** How many times longer than their interval polls may wait; less than once while there is no stream on purpose. */
  get patience(): number {
    if (this.#isResting) return Math.min(1, BUSY_INTERVAL / this.#parts.pollInterval);
    return this.#healthy ? PATIENCE : 1;
  }

  /** The task types of this process changed. */
  reopen(): void {
    if (this.#stream === undefined) return;
    this.#stream.closing.abort();
    this.wake();
  }

  /** There is room for more jobs: news of them are welcome again, now and not after the pause. */
  listen(): void {
    if (this.#isResting) this.wake();
  }

  override async stop(): Promise<void> {
    const stream = this.#stream;
    stream?.closing.abort();
    await super.stop();
    await this.#close(stream);
  }

  /** Reads the stream once; one round after the other follows it. */
  async runOnce(): Promise<number> {
    if (this.#parts.isBusy()) return this.#rest();
    this.#isResting = false;
    const stream = (this.#stream ??= this.#open());
    try {
      const { value: news, done } = await stream.news.next();
      if (done === true || stream.closing.signal.aborted) {
        if (done !== true && typeof news === 'object') this.#parts.onNews(news);
        await this.#close(stream);
        return 0;
      }
      return this.#hear(news);
    } catch (error) {
      const wasHealthy = this.#healthy;
      await this.#close(stream);
      if (wasHealthy) this.#parts.onGap();
      if ((error as { code?: unknown }).code === NOT_A_REPLICA_SET) return ASK_AGAIN;
      throw error;
    }
  }

  /** Returns how long to wait before the next reading: what comes in a burst is read together. */
  #hear(news: News | 'open' | 'quiet'): number {
    const { onNews, onGap } = this.#parts;
    if (news === 'open') {
      this.#healthy = true;
      onGap();
    } else if (news !== 'quiet') {
      onNews(news);
      this.#pace.step();
    }
    return this.#pace.wait;
  }

  /** Schedules that change and jobs to cancel are found by polls meanwhile, which come more often. */
  async #rest(): Promise<number> {
    if (!this.#isResting) {
      this.#isResting = true;
      await this.#close(this.#stream);
      this.#parts.onGap();
    }
    return BUSY_PAUSE;
  }

  #open(): Stream {
    const { store, queues, taskTypes } = this.#parts;
    const closing = new AbortController();
    return { closing, news: store.watch({ queues, taskTypes: taskTypes() }, closing.signal) };
  }

  async #close(stream: Stream | undefined): Promise<void> {
    if (stream === undefined) return;
    if (this.#stream === stream) {
      this.#stream = undefined;
      this.#healthy = false;
    }
    await stream.news.return();
  }
}
