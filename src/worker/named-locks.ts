import { randomUUID } from 'node:crypto';
import type { Clock } from '../domain/clock.js';
import { ChronosError, toError, withoutCredentials } from '../domain/errors.js';
import { checkLockName } from '../domain/names.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Store } from '../store/store.js';
import type { HeldLease, LockManager } from './lock-manager.js';

const FIRST_PAUSE = 20;
const LONGEST_PAUSE = 1000;

/** What `withLock` gives to its function. */
export interface HeldLock {
  readonly name: string;
  /** Rises with every holder. Hand it to what the lock protects, to refuse writes of an earlier holder. */
  readonly fence: number;
  /** Aborted when the lock is lost. */
  readonly signal: AbortSignal;
}

export interface NamedLocksParts {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'acquireLock' | 'releaseLock' | 'findLock'>;
  locks: LockManager;
  workerId: string;
  lockTimeout: number;
}

interface Holding {
  readonly name: string;
  readonly token: string;
  readonly leases: readonly HeldLease[];
  readonly onLost: () => void;
}

/** Locks that people name: one function at a time under each name, in all processes. */
export class NamedLocks {
  readonly #parts: NamedLocksParts;
  readonly #holdings = new Set<Holding>();
  readonly #closed = new AbortController();

  constructor(parts: NamedLocksParts) {
    this.#parts = parts;
  }

  /** Runs `fn` while holding the named lock; throws LOCK_HELD when it is not free within `wait` milliseconds. */
  async withLock<T>(name: string, fn: (lock: HeldLock) => T | Promise<T>, wait: number): Promise<T> {
    const { locks, lockTimeout: length } = this.#parts;
    checkLockName(name);
    await locks.open();
    this.#assertOpen();
    const token = randomUUID();
    const { fence, sentAt } = await this.#acquire(name, token, wait);
    if (this.#closed.signal.aborted) await this.#free(name, token);
    this.#assertOpen();
    const control = new AbortController();
    const onLost = (): void => {
      control.abort(new ChronosError('LOCK_LOST', `the lock '${name}' was lost`));
    };
    const request = { kind: 'named', id: name, token, length, sentAt, onLost } as const;
    const leases = locks.hold([{ ...request, runsFor: Infinity, buffered: false }]);
    const holding = { name, token, leases, onLost };
    this.#holdings.add(holding);
    try {
      // The process may have been frozen while the answer was on its way.
      if (!leases.every((lease) => locks.isValid(lease))) onLost();
      control.signal.throwIfAborted();
      return await fn({ name, fence, signal: control.signal });
    } finally {
      this.#holdings.delete(holding);
      for (const lease of leases) locks.release(lease);
      await this.#free(name, token);
    }
  }

  /** For good, before renewal ends: whoever still works under a lock must know it, and others need not wait. */
  async close(): Promise<void> {
    this.#closed.abort();
    const holdings = [...this.#holdings];
    for (const { leases, onLost } of holdings) {
      for (const lease of leases) this.#parts.locks.release(lease);
      onLost();
    }
    await Promise.all(holdings.map(({ name, token }) => this.#free(name, token)));
  }

  async #acquire(name: string, token: string, wait: number): Promise<{ fence: number; sentAt: number }> {
    const { clock, store, workerId, lockTimeout } = this.#parts;
    const end = clock.monotonic() + wait;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(LONGEST_PAUSE, pause * 2)) {
      const sentAt = clock.monotonic();
      const now = clock.now();
      const lockedUntil = new Date(now.getTime() + lockTimeout);
      const lock = await store
        .acquireLock(name, { token, workerId, lockedUntil }, now)
        .catch(async (error: unknown) => {
          // The reply may be lost and the lock ours: nobody would release it.
          await store.releaseLock(name, token).catch(() => undefined);
          throw error;
        });
      if (lock !== null) return { fence: lock.fence, sentAt };
      const left = end - clock.monotonic();
      if (left <= 0) break;
      await clock.sleep(Math.min(pause, left), this.#closed.signal);
      this.#assertOpen();
    }
    const holder = await store.findLock(name);
    throw new ChronosError(
      'LOCK_HELD',
      `the lock '${name}' is held by ${holder?.lockedBy ?? 'another process'} until ${holder?.lockedUntil.toISOString() ?? 'an unknown time'}, unless it is renewed`,
    );
  }

  /** What `fn` came to counts, not whether its lock could be freed: unrenewed, it runs out by itself. */
  async #free(name: string, token: string): Promise<void> {
    const { store, events } = this.#parts;
    await store.releaseLock(name, token).catch((error: unknown) => {
      events.emit('worker:trouble', {
        operation: 'release a lock',
        error: withoutCredentials(toError(error)),
        failures: 1,
        retryIn: 0,
      });
    });
  }

  #assertOpen(): void {
    if (this.#closed.signal.aborted)
      throw new ChronosError('WRONG_STATE', 'the scheduler was stopped meanwhile');
  }
}
