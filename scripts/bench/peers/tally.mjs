import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';

/** A peer that has done nothing for so long will not do the rest. */
const GIVE_UP_MS = 20_000;
const LOOK_MS = 5;

/** Notes what a worker does with jobs that are numbered from 0. Its clock runs from the beginning. */
export class Tally {
  #since = performance.now();
  #changed = this.#since;
  #total;
  #starts;
  #started = 0;
  #completed = 0;

  constructor(total) {
    this.#total = total;
    this.#starts = new Uint16Array(total);
  }

  /** To be called by the handler. */
  started(index) {
    if (this.#starts[index]++ === 0) this.#started++;
    this.#changed = performance.now();
  }

  /** To be called when the peer has written down that a job is done. */
  completed(count = 1) {
    this.#completed += count;
    this.#changed = performance.now();
  }

  /** Resolves when every job is done, or nothing happens any more. */
  async over() {
    await this.#until(() => this.#completed >= this.#total);
  }

  /** For a peer that does not say when it has written down that a job is done. */
  async overInDatabase(countUnfinished) {
    await this.#until(() => this.#started === this.#total);
    await this.#until(async () => {
      const news = this.#total - this.#completed - (await countUnfinished());
      if (news > 0) this.completed(news);
      return this.#completed >= this.#total;
    });
  }

  /** Up to the last thing that happened. */
  get milliseconds() {
    return this.#changed - this.#since;
  }

  /** Starts that were one too many. */
  get twice() {
    return this.#starts.reduce((sum, starts) => sum + Math.max(0, starts - 1), 0);
  }

  get missed() {
    return this.#total - Math.min(this.#started, this.#completed);
  }

  async #until(isTrue) {
    while (!(await isTrue()) && performance.now() - this.#changed < GIVE_UP_MS) await pause(LOOK_MS);
  }
}

/** The payloads of the jobs, in the chunks in which they are handed over. */
export function* payloads(total, size) {
  for (let from = 0; from < total; from += size) {
    yield Array.from({ length: Math.min(size, total - from) }, (_, more) => ({ index: from + more }));
  }
}
