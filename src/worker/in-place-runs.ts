import { randomUUID } from 'node:crypto';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job.js';
import { afterClaim } from '../store/claim.js';
import type { Store } from '../store/store.js';
import type { DoubtfulClaims } from './doubtful-claims.js';
import type { JobRunner } from './job-runner.js';

export interface InPlaceParts {
  store: Pick<Store, 'enqueue'>;
  clock: Clock;
  workerId: string;
  leaseOf: (taskType: string) => number;
  runner: JobRunner;
  doubtful: DoubtfulClaims;
}

/** Runs new jobs here and now: inserted RUNNING and locked, so that no other process takes them as well. */
export class InPlaceRuns {
  readonly #parts: InPlaceParts;
  #stopped = false;

  constructor(parts: InPlaceParts) {
    this.#parts = parts;
  }

  /** Nothing is begun any more; what was inserted just now is given back. */
  stop(): void {
    this.#stopped = true;
  }

  /** Resolves when the outcome is written, to false when the job was there already. */
  async run(job: JobDocument): Promise<boolean> {
    const { store, clock, workerId, leaseOf, runner, doubtful } = this.#parts;
    await runner.slotFree();
    this.#assertGoing();
    if (runner.allStuck) {
      throw new ChronosError(
        'WRONG_STATE',
        'handlers that ignore their signal hold every slot of this process',
      );
    }
    const sentAt = clock.monotonic();
    const now = clock.now();
    const lease = leaseOf(job.taskType);
    const grant = { token: randomUUID(), workerId, lockedUntil: new Date(now.getTime() + lease) };
    const claimed = { job: afterClaim('claim', job, grant, now), token: grant.token, lease, sentAt };
    try {
      if ((await store.enqueue(claimed.job)).duplicate) return false;
    } catch (error) {
      doubtful.add({ token: grant.token, ids: [job._id], lease });
      throw error;
    }
    if (this.#stopped) await doubtful.giveBack([claimed]);
    this.#assertGoing();
    runner.accept([claimed]);
    await runner.settled(new Set([job._id]));
    return true;
  }

  #assertGoing(): void {
    if (this.#stopped) throw new ChronosError('WRONG_STATE', 'the worker was stopped meanwhile');
  }
}
