import { resolveWait } from '../config/call-options.js';
import type { Clock } from '../domain/clock.js';
import { parseDuration, type Duration } from '../domain/duration.js';
import { ChronosError } from '../domain/errors.js';
import { parseInstant, type Instant } from '../domain/instant.js';
import { isFinished } from '../domain/job.js';
import type { CancelAnswer } from '../store/cancel.js';
import { isUncertain } from '../store/faults.js';
import type { MoveAnswer } from '../store/move.js';
import { viewOf, type JobView } from './job-view.js';
import type { Store } from '../store/store.js';

const FIRST_LOOK = 20;
const LONGEST_PAUSE = 1000;

export interface HandleParts {
  store: Pick<Store, 'move' | 'findJob'>;
  clock: Clock;
  timezone: string;
  cancel: (jobId: string, reason: string | null) => Promise<CancelAnswer>;
  nudge: () => void;
}

/** A dispatched job. Deliberately not a thenable: awaiting it twice is harmless. */
export class JobHandle {
  readonly id: string;
  /** True when the key was taken: this is the job that was there. */
  readonly duplicate: boolean;
  readonly #parts: HandleParts;

  constructor(id: string, duplicate: boolean, parts: HandleParts) {
    this.id = id;
    this.duplicate = duplicate;
    this.#parts = parts;
  }

  /** Moves the job to an instant, as long as nobody has claimed it; the answer says when somebody has. */
  at(when: Instant): Promise<MoveAnswer> {
    return this.#move(parseInstant(when, this.#parts.timezone, 'at()'));
  }

  /** Moves the job to this long from now, as long as nobody has claimed it. */
  delay(delay: Duration): Promise<MoveAnswer> {
    return this.#move(new Date(this.#parts.clock.now().getTime() + parseDuration(delay, 'delay()')));
  }

  cancel(reason?: string): Promise<CancelAnswer> {
    return this.#parts.cancel(this.id, reason ?? null);
  }

  /** Resolves to the finished job, whatever it came to; throws WAIT_TIMEOUT when `timeout` is up first. Default: no limit. */
  async wait(options: { timeout?: Duration } = {}): Promise<JobView> {
    const { store, clock } = this.#parts;
    const limit = resolveWait(options);
    const end = clock.monotonic() + limit;
    for (let pause = FIRST_LOOK; ; pause = Math.min(LONGEST_PAUSE, pause * 2)) {
      const job = await store.findJob(this.id).catch((error: unknown) => {
        // Out of reach for a while: the job is not affected.
        if (!isUncertain(error)) throw error;
        return undefined;
      });
      if (job === null)
        throw new ChronosError('JOB_NOT_FOUND', `there is no job '${this.id}' any more: it was pruned`);
      if (job !== undefined && isFinished(job.status)) return viewOf(job);
      const left = end - clock.monotonic();
      if (left <= 0) {
        throw new ChronosError(
          'WAIT_TIMEOUT',
          `job '${this.id}' is still ${job?.status ?? 'out of reach'} after ${limit} ms`,
        );
      }
      await clock.sleep(Math.min(pause, left));
    }
  }

  async #move(nextRunAt: Date): Promise<MoveAnswer> {
    const answer = await this.#parts.store.move(this.id, nextRunAt);
    this.#parts.nudge();
    return answer;
  }
}
