import type { Clock } from '../domain/clock.js';
import { within } from '../runtime/within.js';
import type { QueueBacklog } from '../store/backlog.js';

/** The database is asked no more often than this, however many there are who scrape. Milliseconds. */
const INTERVAL = 15_000;
/** A scrape does not wait longer for it; what comes later is there for the next one. Milliseconds. */
const LONGEST_WAIT = 1000;

export interface BacklogFigures extends QueueBacklog {
  /** How long this process alone would take at its pace since the last look, in milliseconds. */
  drain: number;
}

export interface BacklogParts {
  clock: Clock;
  read: () => Promise<QueueBacklog[]>;
  /** Jobs of the queue that were finished here, ever. */
  finishedIn: (queue: string) => number;
}

/** What waits in the queues: read from the database when somebody scrapes, and kept for a while. */
export class Backlog {
  readonly #parts: BacklogParts;
  readonly #finished = new Map<string, number>();
  #known: BacklogFigures[] = [];
  #readAt: number;
  #askedAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(parts: BacklogParts) {
    this.#parts = parts;
    this.#readAt = parts.clock.monotonic();
  }

  async figures(): Promise<readonly BacklogFigures[]> {
    const { clock } = this.#parts;
    if (this.#reading === undefined && clock.monotonic() - this.#askedAt >= INTERVAL) {
      this.#askedAt = clock.monotonic();
      this.#reading = this.#read().finally(() => (this.#reading = undefined));
    }
    if (this.#reading !== undefined) await within(clock, LONGEST_WAIT, this.#reading);
    return this.#known;
  }

  /** Without an answer there are no figures: old ones would look as if all were well. */
  async #read(): Promise<void> {
    const found = await this.#parts.read().catch(() => []);
    const now = this.#parts.clock.monotonic();
    const elapsed = now - this.#readAt;
    this.#readAt = now;
    this.#known = found.map((one) => ({ ...one, drain: this.#drain(one, elapsed) }));
  }

  #drain({ queue, waiting }: QueueBacklog, elapsed: number): number {
    const finished = this.#parts.finishedIn(queue);
    const done = finished - (this.#finished.get(queue) ?? 0);
    this.#finished.set(queue, finished);
    if (waiting === 0) return 0;
    return done === 0 ? Infinity : (waiting / done) * elapsed;
  }
}
