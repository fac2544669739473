import type { ClaimedJob } from './claimed-job.js';
import type { JobPicker } from './job-picker.js';
import type { JobRunner } from './job-runner.js';
import type { PollLoopParts } from './poll-loop.js';

export interface OnePassParts extends Pick<PollLoopParts, 'giveBack' | 'exclusively'> {
  picker: JobPicker;
  runner: JobRunner;
}

/** Claims and executes due jobs until there are none or a number is reached: one pass, started by a person or by cron. */
export class OnePass {
  readonly #parts: OnePassParts;
  readonly #stopped = new AbortController();

  constructor(parts: OnePassParts) {
    this.#parts = parts;
  }

  /** No claims any more; one under way is given back. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Resolves after the jobs settled, to how many there were. */
  async run(batch: number): Promise<number> {
    const { runner } = this.#parts;
    const ids = new Set<string>();
    // Runs are counted, not jobs: one that is due again at once must not keep the pass going for ever.
    let count = 0;
    for (let waited = false; count < batch && !this.#stopped.signal.aborted;) {
      await runner.slotFree();
      if (runner.allStuck || this.#stopped.signal.aborted) break;
      const { claimed, withoutSuspects } = await this.#claim(batch - count);
      count += claimed.length;
      for (const { job } of claimed) ids.add(job._id);
      if (claimed.length === 0 && (waited || !withoutSuspects)) break;
      // Suspects run one at a time: the next may be taken once this one is through.
      waited = claimed.length === 0;
      if (waited) await runner.settled(ids);
    }
    await runner.settled(ids);
    return count;
  }

  async #claim(most: number): Promise<{ claimed: ClaimedJob[]; withoutSuspects: boolean }> {
    const { picker, runner, giveBack, exclusively } = this.#parts;
    return exclusively(async () => {
      // It may have waited for its turn until after the stop.
      if (this.#stopped.signal.aborted) return { claimed: [], withoutSuspects: false };
      const withoutSuspects = runner.hasSuspect;
      const slots = Math.min(runner.freeSlots, most);
      if (slots === 0) return { claimed: [], withoutSuspects: true };
      const claimed = await picker.pick({ slots, buffer: 0, withoutSuspects, exclude: runner.zombies });
      if (!this.#stopped.signal.aborted) {
        return { claimed: runner.accept(claimed), withoutSuspects };
      }
      await giveBack(claimed);
      return { claimed: [], withoutSuspects };
    });
  }
}
