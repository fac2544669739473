import { createHash, randomUUID } from 'node:crypto';
import type { Clock } from '../../domain/clock.js';
import { RESERVED_LOCK_PREFIX } from '../../domain/identifiers.js';
import type { ScheduleScope } from '../../store/schedules/due.js';
import type { Store } from '../../store/store.js';

export const PLANNING_LOCK_MS = 2000;

export interface PlanningLockDeps {
  clock: Clock;
  workerId: string;
  store: Pick<Store, 'acquireLock' | 'releaseLock'>;
}

/**
 * Lets one process plan at a time. If several processes plan the same schedules at the same moment, the work of all but
 * one is wasted. So a process that has lost a round takes this lock before the next one. It is only an optimization:
 * planning without it is safe.
 */
export class PlanningLock {
  readonly #deps: PlanningLockDeps;
  #isContended = false;
  #held: { name: string; token: string; until: number } | undefined;

  constructor(deps: PlanningLockDeps) {
    this.#deps = deps;
  }

  /** Takes the result of a round. */
  observe(stored: number, conflicts: number): void {
    this.#isContended ||= conflicts > stored;
  }

  async tryAcquire({ names, environment }: ScheduleScope): Promise<boolean> {
    const { clock, store, workerId } = this.#deps;
    if (!this.#isContended) return true;
    const sentAt = clock.monotonic();
    if (this.#held !== undefined && sentAt < this.#held.until) return true;
    const now = clock.now();
    const token = randomUUID();
    // One lock for each set of schedules: processes with different definitions do not conflict.
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
    if (held !== undefined) await this.#deps.store.releaseLock(held.name, held.token).catch(() => undefined);
  }
}
