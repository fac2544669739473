import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';

/** If nothing happens for this long, the remaining jobs count as missed. */
const GIVE_UP_MS = 20_000;
const POLL_MS = 5;

/** Counts the starts and completions of jobs that are numbered from 0. Its clock starts with the constructor. */
export class Tally {
  #since = performance.now();
  #lastChange = this.#since;
  #total;
  #starts;
  #started = 0;
  #completed = 0;

  constructor(total) {
    this.#total = total;
    this.#starts = new Uint16Array(total);
  }

  /** Call it in the handler. */
  started(index) {
    if (this.#starts[index]++ === 0) this.#started++;
    this.#lastChange = performance.now();
  }

  /** Call it when the peer has stored that a job is completed. */
  completed(count = 1) {
    this.#completed += count;
    this.#lastChange = performance.now();
  }

  /** Resolves when every job is completed, or when nothing happens any more. */
  async whenCompleted() {
    await this.#waitUntil(() => this.#completed >= this.#total);
  }

  /** The same for a peer that does not report when a completion is stored: reads it from the database. */
  async whenCompletedInDatabase(countUnfinished) {
    await this.#waitUntil(() => this.#started === this.#total);
    await this.#waitUntil(async () => {
      const newlyCompleted = this.#total - this.#completed - (await countUnfinished());
      if (newlyCompleted > 0) this.completed(newlyCompleted);
      return this.#completed >= this.#total;
    });
  }

  /** From the constructor to the last start or completion. */
  get milliseconds() {
    return this.#lastChange - this.#since;
  }

  /** Additional starts of jobs that had already started. */
  get startedTwice() {
    return this.#starts.reduce((sum, starts) => sum + Math.max(0, starts - 1), 0);
  }

  get missed() {
    return this.#total - Math.min(this.#started, this.#completed);
  }

  async #waitUntil(isMet) {
    while (!(await isMet()) && performance.now() - this.#lastChange < GIVE_UP_MS) await pause(POLL_MS);
  }
}

/** The payloads of the jobs, in chunks. */
export function* payloads(total, size) {
  for (let from = 0; from < total; from += size) {
    yield Array.from({ length: Math.min(size, total - from) }, (_, offset) => ({ index: from + offset }));
  }
}
