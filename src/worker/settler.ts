import type { JobDocument } from '../domain/job.js';
import type { Attempt } from './job-executor.js';
import { OutcomeWriter, type OutcomeWriterParts, type Settlement, type Unwritten } from './outcome-writer.js';

const LARGEST_BATCH = 1000;
/** So many outcomes are not held back for more. */
const ENOUGH = 500;
/** Writes under way at the same time: while the server works on one, this process prepares the next. */
const MOST_WRITES = 2;

/**
 * Gathers outcomes to be written together. What arrives while writes are under way goes with the next one: a job
 * alone settles at once, many settle together, and no timer is needed for it.
 */
export class Settler {
  readonly #abandoned = new AbortController();
  readonly #writer: OutcomeWriter;
  readonly #writes = new Set<Promise<void>>();
  #waiting: Unwritten[] = [];
  /** Outcomes in the writes under way. */
  #writing = 0;
  #gathering = false;

  constructor(parts: OutcomeWriterParts) {
    this.#writer = new OutcomeWriter(parts, this.#abandoned.signal);
  }

  /** Outcomes that are not written yet. */
  get pending(): number {
    return this.#waiting.length + this.#writing;
  }

  /** Resolves when the outcome is written, or can never be. `alone`: in a write of its own, now. */
  settle(job: JobDocument, token: string, attempt: Attempt, alone = false): Promise<Settlement> {
    return new Promise((resolve) => {
      const item = { job, token, attempt, outcome: attempt.outcome, refusals: 0, resolve };
      if (alone) this.#begin([item]);
      else {
        this.#waiting.push(item);
        this.#flush();
      }
    });
  }

  /** Resolves when everything given so far is written. */
  async flushed(): Promise<void> {
    while (this.#waiting.length > 0 || this.#writes.size > 0) {
      await (this.#writes.size > 0 ? Promise.all(this.#writes) : new Promise(setImmediate));
    }
  }

  /** Gives up on what cannot be written: the locks run out, and others recover the jobs. */
  abandon(): void {
    this.#abandoned.abort();
  }

  #flush(): void {
    if (this.#gathering || this.#waiting.length === 0 || this.#writes.size >= MOST_WRITES) return;
    this.#gathering = true;
    this.#gather(this.#waiting.length);
  }

  /** As long as every turn of the event loop brings more, a few hundred go together; one alone waits for no other. */
  #gather(before: number): void {
    setImmediate(() => {
      const now = this.#waiting.length;
      if (now > before && now < ENOUGH) {
        this.#gather(now);
        return;
      }
      this.#gathering = false;
      this.#begin(this.#waiting.splice(0, LARGEST_BATCH));
      this.#flush();
    });
  }

  #begin(items: readonly Unwritten[]): void {
    this.#writing += items.length;
    const write = this.#writer.write(items).finally(() => {
      this.#writing -= items.length;
      this.#writes.delete(write);
      this.#flush();
    });
    this.#writes.add(write);
  }
}
