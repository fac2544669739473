import type { Clock } from '../domain/clock.js';
import { waitAtMost } from '../runtime/waiting.js';
import type { QueueBacklog } from '../store/jobs/counts.js';

/** The database is read no more often than this, however often the metrics are scraped. */
const MIN_INTERVAL_MS = 15_000;
/** A scrape waits at most this long; a later result is used by the next scrape. */
const MAX_WAIT_MS = 1000;

export interface BacklogFigures extends QueueBacklog {
  /** Milliseconds that this process alone would need for these jobs, at its rate since the last read. */
  drain: number;
}

export interface BacklogDeps {
  clock: Clock;
  read: () => Promise<QueueBacklog[]>;
  /** How many jobs of the queue this process has finished since its start. */
  finishedIn: (queue: string) => number;
}

/** The backlog of each queue, read from the database on a scrape and cached. */
export class Backlog {
  readonly #deps: BacklogDeps;
  readonly #lastRead = new Map<string, { at: number; finished: number }>();
  readonly #createdAt: number;
  #figures: BacklogFigures[] = [];
  #requestedAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(deps: BacklogDeps) {
    this.#deps = deps;
    this.#createdAt = deps.clock.monotonic();
  }

  async figures(): Promise<readonly BacklogFigures[]> {
    const { clock } = this.#deps;
    if (this.#reading === undefined && clock.monotonic() - this.#requestedAt >= MIN_INTERVAL_MS) {
      this.#requestedAt = clock.monotonic();
      this.#reading = this.#read().finally(() => (this.#reading = undefined));
    }
    if (this.#reading !== undefined) await waitAtMost(clock, MAX_WAIT_MS, this.#reading);
    return this.#figures;
  }

  /** After a failed read there are no figures: old ones would hide the problem. */
  async #read(): Promise<void> {
    const found = await this.#deps.read().catch(() => []);
    this.#figures = found.map((backlog) => ({ ...backlog, drain: this.#estimateDrain(backlog) }));
  }

  #estimateDrain({ queue, waiting }: QueueBacklog): number {
    const now = { at: this.#deps.clock.monotonic(), finished: this.#deps.finishedIn(queue) };
    const last = this.#lastRead.get(queue) ?? { at: this.#createdAt, finished: 0 };
    this.#lastRead.set(queue, now);
    if (waiting === 0) return 0;
    const finished = now.finished - last.finished;
    return finished === 0 ? Infinity : (waiting / finished) * (now.at - last.at);
  }
}
