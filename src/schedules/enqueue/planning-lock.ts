import { createHash, randomUUID } from 'node:crypto';
import type { Clock } from '../../domain/clock.js';
import { RESERVED_LOCK_PREFIX } from '../../domain/identifiers.js';
import type { ScheduleScope } from '../../store/schedules/due.js';
import type { Store } from '../../store/store.js';

/** A process that crashes while it holds the lock delays the others by at most this long. */
export const PLANNING_LOCK_MS = 2000;

export interface PlanningLockDeps {
  clock: Clock;
  workerId: string;
  store: Pick<Store, 'acquireLock' | 'releaseLock'>;
}

/**
 * Elects one process to plan while several compete. Processes that plan the same schedules at the same moment conflict:
 * the compare-and-set of only one of them succeeds, and the work of the others is wasted. So a process plans without
 * the lock until most plans of a round conflict, and from then on only while it holds the lock. This is only an
 * optimization: planning without the lock is safe.
 */
export class PlanningLock {
  readonly #deps: PlanningLockDeps;
  #isContended = false;
  #held: { name: string; token: string; until: number } | undefined;

  constructor(deps: PlanningLockDeps) {
    this.#deps = deps;
  }

  /** Call it after each round, with the number of stored plans and of conflicts. */
  observe(stored: number, conflicts: number): void {
    this.#isContended ||= conflicts > stored;
  }

  /** True if this process may plan now. */
  async tryAcquire({ names, environment }: ScheduleScope): Promise<boolean> {
    const { clock, store, workerId } = this.#deps;
    if (!this.#isContended) return true;
    // The lease counts from before the request, so that it ends here before it ends in the database.
    const sentAt = clock.monotonic();
    if (this.#held !== undefined && sentAt < this.#held.until) return true;
    const now = clock.now();
    const token = randomUUID();
    // One lock per set of schedules: a process must not wait for one that plans other schedules.
    const scope = createHash('sha256').update(JSON.stringify([environment, names.toSorted()]));
    const name = `${RESERVED_LOCK_PREFIX}schedules:${scope.digest('hex').slice(0, 16)}`;
    const grant = { token, workerId, lockedUntil: new Date(now.getTime() + PLANNING_LOCK_MS) };
    const lock = await store.acquireLock(name, grant, now);
    this.#held = lock === null ? undefined : { name, token, until: sentAt + PLANNING_LOCK_MS };
    return lock !== null;
  }

  async release(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    // If this fails, the lock expires.
    if (held !== undefined) await this.#deps.store.releaseLock(held.name, held.token).catch(() => undefined);
  }
}
