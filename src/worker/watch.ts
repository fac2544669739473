import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { Pace } from '../runtime/pace.js';
import { PeriodicService } from '../runtime/service.js';
import type { Store } from '../store/store.js';
import type { News, WatchRequest } from '../store/watch.js';

/** What a server says that has no change streams: a standalone one. */
const NOT_A_REPLICA_SET = 40_573;
/** It may have become one. */
const ASK_AGAIN = 3_600_000;
/** How often a stream without news of jobs is read, in milliseconds. */
const QUIET_PAUSE = 500;
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
  /** There is more than enough to do: news of jobs would cost the server, and nobody needs them. */
  isBusy: () => boolean;
  onNews: (news: News) => void;
  /** Something may have happened that the stream does not tell: everybody looks for themselves. */
  onGap: () => void;
}

interface Stream {
  readonly news: ReturnType<Store['watch']>;
  readonly scope: WatchRequest['scope'];
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

  constructor(parts: WatchParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
    this.#pace = new Pace(parts.clock);
  }

  /** How many times longer than their interval polls may wait. */
  get patience(): number {
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
    if (this.#stream?.scope === 'quietly') this.wake();
  }

  override async stop(): Promise<void> {
    const stream = this.#stream;
    stream?.closing.abort();
    await super.stop();
    await this.#close(stream);
  }

  /** Reads the stream once; one round after the other follows it. */
  async runOnce(): Promise<number> {
    const stream = (this.#stream ??= this.#open());
    try {
      const { value: news, done } = await stream.news.next();
      if (done === true || stream.closing.signal.aborted || stream.scope !== this.#scope) {
        if (done !== true && typeof news === 'object') this.#parts.onNews(news);
        await this.#close(stream);
        return 0;
      }
      return this.#hear(news, stream.scope);
    } catch (error) {
      const wasHealthy = this.#healthy;
      await this.#close(stream);
      if (wasHealthy) this.#parts.onGap();
      if ((error as { code?: unknown }).code === NOT_A_REPLICA_SET) return ASK_AGAIN;
      throw error;
    }
  }

  /** Returns how long to wait before the next reading: what comes in a burst is read together. */
  #hear(news: News | 'open' | 'quiet', scope: Stream['scope']): number {
    const { onNews, onGap } = this.#parts;
    if (news === 'open') {
      this.#healthy = true;
      onGap();
    } else if (news !== 'quiet') {
      onNews(news);
      this.#pace.step();
    }
    return scope === 'quietly' ? QUIET_PAUSE : this.#pace.wait;
  }

  get #scope(): Stream['scope'] {
    return this.#parts.isBusy() ? 'quietly' : 'all';
  }

  #open(): Stream {
    const { store, queues, taskTypes } = this.#parts;
    const closing = new AbortController();
    const scope = this.#scope;
    return { closing, scope, news: store.watch({ scope, queues, taskTypes: taskTypes() }, closing.signal) };
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
