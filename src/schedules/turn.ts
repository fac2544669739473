import { createHash, randomUUID } from 'node:crypto';
import type { Clock } from '../domain/clock.js';
import { OWN_LOCKS } from '../domain/names.js';
import type { ScheduleScope } from '../store/due-schedules.js';
import type { Store } from '../store/store.js';

/** How long one process decides for all that lose rounds to each other, in milliseconds. */
export const TURN = 2000;

export interface TurnParts {
  clock: Clock;
  workerId: string;
  store: Pick<Store, 'acquireLock' | 'releaseLock'>;
}

/**
 * Processes that decide on the same schedules at the same moment waste all but one's work. Who has lost a round asks
 * for a turn before the next; alone, nobody has to. A hint and no more: who decides out of turn wastes work, and
 * breaks nothing.
 */
export class Turn {
  readonly #parts: TurnParts;
  #contended = false;
  #held: { name: string; token: string; until: number } | undefined;

  constructor(parts: TurnParts) {
    this.#parts = parts;
  }

  /** What a round came to. */
  observe(won: number, lost: number): void {
    this.#contended ||= lost > won;
  }

  async isMine({ names, environment }: ScheduleScope): Promise<boolean> {
    const { clock, store, workerId } = this.#parts;
    if (!this.#contended) return true;
    const sentAt = clock.monotonic();
    if (this.#held !== undefined && sentAt < this.#held.until) return true;
    const now = clock.now();
    const token = randomUUID();
    // Only those that decide on the same schedules stand in each other's way.
    const scope = createHash('sha256').update(JSON.stringify([environment, names.toSorted()]));
    const name = `${OWN_LOCKS}schedules:${scope.digest('hex').slice(0, 16)}`;
    const grant = { token, workerId, lockedUntil: new Date(now.getTime() + TURN) };
    const lock = await store.acquireLock(name, grant, now);
    this.#held = lock === null ? undefined : { name, token, until: sentAt + TURN };
    return lock !== null;
  }

  /** The next one need not wait for the end of a turn. */
  async end(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) await this.#parts.store.releaseLock(held.name, held.token).catch(() => undefined);
  }
}
