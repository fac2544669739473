import { randomUUID } from 'node:crypto';
import type { Clock } from '../../domain/clock.js';
import type { Duration } from '../../domain/duration.js';
import { ChronosError } from '../../domain/errors.js';
import { assertLockName } from '../../domain/identifiers.js';
import { duration, object, parse } from '../../domain/validation.js';
import type { EventBus } from '../../runtime/event-bus.js';
import { pollUntil } from '../../runtime/retry.js';
import type { Store } from '../../store/store.js';
import type { HeldLease, LockManager } from './lock-manager.js';

const POLL_BACKOFF = { first: 20, max: 1000 };

const withLockShape = object<{ wait: number }>({ wait: duration() });

/** The argument of the function passed to `withLock`. */
export interface HeldLock {
  readonly name: string;
  /** Increases with every holder. Store it with protected writes, so that writes of an earlier holder can be rejected. */
  readonly fence: number;
  /** Aborted when the lock is lost. */
  readonly signal: AbortSignal;
}

export interface NamedLocksDeps {
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

/** Runs at most one function at a time under each lock name, across all processes. */
export class NamedLocks {
  readonly #deps: NamedLocksDeps;
  readonly #holdings = new Set<Holding>();
  readonly #closed = new AbortController();

  constructor(deps: NamedLocksDeps) {
    this.#deps = deps;
  }

  /** Runs `fn` while holding the named lock; throws LOCK_HELD when it is not free within `wait`. Default: no wait. */
  async withLock<T>(
    name: string,
    fn: (lock: HeldLock) => T | Promise<T>,
    options: { wait?: Duration } = {},
  ): Promise<T> {
    const { locks, lockTimeout: length } = this.#deps;
    assertLockName(name);
    const { wait = 0 } = parse(withLockShape, options, 'withLock() options', 'INVALID_ARGUMENT');
    if (typeof fn !== 'function')
      throw new ChronosError('INVALID_ARGUMENT', `withLock(): fn must be a function, got ${typeof fn}`);
    await locks.open();
    this.#assertOpen();
    const token = randomUUID();
    const { fence, sentAt } = await this.#acquire(name, token, wait);
    if (this.#closed.signal.aborted) await this.#release(name, token);
    this.#assertOpen();
    const control = new AbortController();
    const onLost = (): void => control.abort(new ChronosError('LOCK_LOST', `the lock '${name}' was lost`));
    const request = { kind: 'named', id: name, token, length, sentAt, onLost } as const;
    const leases = locks.hold([{ ...request, runsFor: Infinity, prefetched: false }]);
    const holding = { name, token, leases, onLost };
    this.#holdings.add(holding);
    try {
      // The process may have been suspended while the reply was on its way.
      if (!leases.every((lease) => locks.isValid(lease))) onLost();
      control.signal.throwIfAborted();
      return await fn({ name, fence, signal: control.signal });
    } finally {
      this.#holdings.delete(holding);
      for (const lease of leases) locks.release(lease);
      await this.#release(name, token);
    }
  }

  /** Releases all locks and aborts the signals of functions that are still running. Call it before renewal ends. */
  async close(): Promise<void> {
    this.#closed.abort();
    const holdings = [...this.#holdings];
    for (const { leases, onLost } of holdings) {
      for (const lease of leases) this.#deps.locks.release(lease);
      onLost();
    }
    await Promise.all(holdings.map(({ name, token }) => this.#release(name, token)));
  }

  async #acquire(name: string, token: string, wait: number): Promise<{ fence: number; sentAt: number }> {
    const { clock, store } = this.#deps;
    const polling = { ...POLL_BACKOFF, clock, timeout: wait, signal: this.#closed.signal };
    const lock = await pollUntil(() => this.#tryAcquire(name, token), polling);
    if (lock !== undefined) return lock;
    this.#assertOpen();
    const holder = await store.findLock(name);
    const owner = holder?.lockedBy ?? 'another process';
    const until = holder?.lockedUntil.toISOString() ?? 'an unknown time';
    const message = `the lock '${name}' is held by ${owner} until ${until}, unless it is renewed`;
    throw new ChronosError('LOCK_HELD', message);
  }

  async #tryAcquire(name: string, token: string): Promise<{ fence: number; sentAt: number } | undefined> {
    const { clock, store, workerId, lockTimeout } = this.#deps;
    const sentAt = clock.monotonic();
    const now = clock.now();
    const lockedUntil = new Date(now.getTime() + lockTimeout);
    try {
      const lock = await store.acquireLock(name, { token, workerId, lockedUntil }, now);
      return lock === null ? undefined : { fence: lock.fence, sentAt };
    } catch (error) {
      // The reply may have been lost after the lock was acquired: release it by its token.
      await store.releaseLock(name, token).catch(() => undefined);
      throw error;
    }
  }

  /** A failed release is only reported: without renewal the lock expires by itself. */
  async #release(name: string, token: string): Promise<void> {
    const { store, events } = this.#deps;
    try {
      await store.releaseLock(name, token);
      events.reportSuccess('release named lock');
    } catch (error) {
      events.reportFailure('release named lock', error);
    }
  }

  #assertOpen(): void {
    if (this.#closed.signal.aborted)
      throw new ChronosError('WRONG_STATE', 'the scheduler was stopped during this call');
  }
}
