import type { Clock } from '../domain/clock.js';
import type { JobDocument } from '../domain/job/job.js';
import { groupBy } from '../domain/language.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import type { Store } from '../store/store.js';

const IDLE_MS = 60_000;
const RETRY_MS = 1000;

/** A claim that may have taken effect although its reply was lost. */
export interface UncertainClaim {
  token: string;
  /** The jobs that it may have locked; undefined if they are not known. */
  ids: readonly string[] | undefined;
  /** Milliseconds until its lock expires. */
  lease: number;
}

type ReleasedJob = Pick<JobDocument, '_id' | 'taskType'>;

interface LockedJob {
  readonly job: ReleasedJob;
  readonly token: string;
  readonly lease: number;
}

type ReleaseStore = Pick<Store, 'release' | 'releaseByToken'>;

/**
 * Releases jobs that this process has locked but will not run. A claim whose reply was lost is never adopted: its token is
 * released repeatedly until its lock has expired, because the claim may still be on its way to the server.
 */
export class UncertainClaims extends PeriodicService {
  readonly name = 'release uncertain claims';
  readonly #store: ReleaseStore;
  /** With the monotonic time at which each lock expires. */
  readonly #claims = new Map<UncertainClaim, number>();
  readonly #releasing = new Set<Promise<void>>();
  /** Locked by a claim of this process, and their release is not confirmed; by token. */
  readonly #unreleased = new Map<string, ReleasedJob[]>();

  constructor(clock: Clock, events: EventBus, store: ReleaseStore) {
    super(clock, events);
    this.#store = store;
  }

  /** Jobs of this process that are still locked as far as it knows. */
  get unreleased(): ReleasedJob[] {
    return [...this.#unreleased.values()].flat();
  }

  add(claim: UncertainClaim): void {
    this.#claims.set(claim, this.clock.monotonic() + claim.lease);
    this.wake();
  }

  /** Releases jobs; a release that fails is retried as an uncertain claim. Never rejects. */
  release(locked: readonly LockedJob[]): Promise<void> {
    const releasing = this.#release(locked).finally(() => this.#releasing.delete(releasing));
    this.#releasing.add(releasing);
    return releasing;
  }

  /** Makes the last attempt, after everything else has stopped. */
  async finish(): Promise<void> {
    await Promise.all(this.#releasing);
    await this.runOnce().catch(() => undefined);
  }

  async runOnce(): Promise<number> {
    for (const [claim, expiresAt] of [...this.#claims]) {
      this.restartTimeLimit();
      const now = this.clock.now();
      if (claim.ids === undefined) await this.#store.releaseByToken(claim.token, now);
      else await this.#store.release(claim.token, claim.ids, now);
      this.#unreleased.delete(claim.token);
      this.events.reportSuccess('release jobs');
      if (this.clock.monotonic() >= expiresAt) this.#claims.delete(claim);
    }
    return this.#claims.size > 0 ? RETRY_MS : IDLE_MS;
  }

  async #release(locked: readonly LockedJob[]): Promise<void> {
    for (const [token, jobs] of groupBy(locked, (one) => one.token)) {
      const ids = jobs.map(({ job }) => job._id);
      this.#unreleased.set(token, [...(this.#unreleased.get(token) ?? []), ...jobs.map(({ job }) => job)]);
      try {
        await this.#store.release(token, ids, this.clock.now());
        this.#unreleased.delete(token);
        this.events.reportSuccess('release jobs');
      } catch (error) {
        this.events.reportFailure('release jobs', error, RETRY_MS);
        this.add({ token, ids, lease: jobs[0].lease });
      }
    }
  }
}
