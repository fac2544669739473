import { randomUUID } from 'node:crypto';
import type { Clock } from '../domain/clock.js';
import { ChronosError, toError, withoutCredentials } from '../domain/errors.js';
import { checkLockName } from '../domain/names.js';
import type { ClockAnchor } from '../runtime/database-clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { Lease } from '../store/renew.js';
import type { Store } from '../store/store.js';
import type { KeptLease, Renewer } from './renewer.js';

/** `gone`: somebody else has the lock. `overdue`: it was not renewed in time, so somebody else might soon. */
export type LossKind = 'gone' | 'overdue';

/** A lock that this process holds, or held: what to ask and to release it by. */
export interface HeldLease extends KeptLease {
  readonly runsFor: number;
  readonly onLost: (kind: LossKind) => void;
  /** The renewer knows of it. */
  isKept: boolean;
}

export interface HoldRequest extends Lease {
  /** Monotonic time from before the request that took the lock was sent. */
  sentAt: number;
  /** How long it is renewed, in milliseconds from the start of what it is for. */
  runsFor: number;
  /** What it is for has not started. */
  buffered: boolean;
  onLost: (kind: LossKind) => void;
}

/** What `withLock` gives to its function. */
export interface HeldLock {
  readonly name: string;
  /** Rises with every holder. Hand it to what the lock protects, to refuse writes of an earlier holder. */
  readonly fence: number;
  /** Aborted when the lock is lost. */
  readonly signal: AbortSignal;
}

export interface LockManagerParts {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'acquireLock' | 'releaseLock' | 'findLock'>;
  renewer: Renewer;
  workerId: string;
  lockTimeout: number;
  anchor: () => ClockAnchor | undefined;
}

/**
 * Knows every lock of this process. The renewer prolongs them; this side keeps a deadline of its own for each,
 * counted by the monotonic clock from before the last confirmed request was sent, and gives a lock up well before
 * others may take it.
 */
export class LockManager extends PeriodicService {
  readonly name = 'watch locks';
  readonly #held = new Set<HeldLease>();
  readonly #parts: LockManagerParts;
  readonly #closed = new AbortController();
  #renewing: Promise<void> | undefined;
  /** The shortest lease at the last round: the rounds follow it. */
  #shortest = Infinity;

  constructor(parts: LockManagerParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
  }

  /** Starts renewal; resolves when it is ready. */
  open(): Promise<void> {
    if (this.#closed.signal.aborted) return Promise.reject(closedError());
    this.#renewing ??= this.#parts.renewer
      .start({
        renewed: (leases, sentAt) => {
          for (const lease of leases) lease.renewedAt = Math.max(lease.renewedAt, sentAt);
          this.events.emit('worker:renewed', { locks: leases.length });
        },
        lost: (leases) => {
          const gone = new Set(leases);
          for (const held of [...this.#held]) if (gone.has(held)) this.#lose(held, 'gone');
        },
        trouble: (error, failures, retryIn) => {
          this.events.emit('worker:trouble', { operation: 'renew locks', error, failures, retryIn });
        },
        recovered: (failures) => {
          this.events.emit('worker:recovered', { operation: 'renew locks', failures });
        },
      })
      .then(() => this.start());
    this.#renewing.catch(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  /** Ends renewal, for good: the last thing to stop, after every lock on a job was given up. */
  async close(): Promise<void> {
    this.#closed.abort();
    // Also one that is still starting: it is not waited for.
    await this.#parts.renewer.stop();
    await this.#renewing?.catch(() => undefined);
    await this.stop();
    this.#renewing = undefined;
    // Whoever still works under a named lock must know that nobody renews it any more, and others need not wait.
    const named = [...this.#held].filter(({ kind }) => kind === 'named');
    for (const held of [...this.#held]) this.#lose(held, 'overdue');
    await Promise.all(named.map(({ id, token }) => this.#free(id, token)));
  }

  hold(requests: readonly HoldRequest[]): HeldLease[] {
    const now = this.clock.monotonic();
    const held = requests.map(
      ({ kind, id, token, length, sentAt, runsFor, buffered, onLost }): HeldLease => ({
        kind,
        id,
        token,
        length,
        renewedAt: sentAt,
        renewUntil: now + runsFor,
        buffered,
        runsFor,
        onLost,
        isKept: false,
      }),
    );
    for (const one of held) this.#held.add(one);
    this.#keep(held.filter(({ buffered }) => !buffered));
    // A lease shorter than all others before must not wait for a round that was planned for those.
    if (held.some(({ length }) => length < this.#shortest)) this.wake();
    return held;
  }

  /** Buffered jobs are about to start: from now on they are renewed even if they block this thread. */
  begin(leases: readonly HeldLease[]): void {
    const now = this.clock.monotonic();
    for (const lease of leases) {
      lease.buffered = false;
      lease.renewUntil = now + lease.runsFor;
    }
    this.#keep(leases.filter((lease) => this.#held.has(lease)));
  }

  /** True while the lock is sure to be this process's. */
  isValid(lease: HeldLease): boolean {
    return this.#held.has(lease) && this.clock.monotonic() < deadline(lease);
  }

  release(held: HeldLease): void {
    if (this.#held.delete(held) && held.isKept) this.#parts.renewer.drop(held);
  }

  /** Tells the renewer that this thread lives, hears what it reported, then judges by the deadlines. */
  runOnce(): Promise<number> {
    const { renewer, anchor, lockTimeout } = this.#parts;
    renewer.beat(anchor());
    renewer.drain();
    const now = this.clock.monotonic();
    this.#shortest = lockTimeout;
    for (const lease of this.#held) {
      this.#shortest = Math.min(this.#shortest, lease.length);
      if (now >= deadline(lease)) this.#lose(lease, 'overdue');
    }
    // What has waited in the buffer until now; most jobs are out of it before anybody has to be told.
    this.#keep([...this.#held].filter(({ isKept }) => !isKept));
    return Promise.resolve(this.#shortest / 12);
  }

  /** Runs `fn` while holding the named lock; throws LOCK_HELD when it is not free within `wait` milliseconds. */
  async withLock<T>(name: string, fn: (lock: HeldLock) => T | Promise<T>, wait: number): Promise<T> {
    checkLockName(name);
    const token = randomUUID();
    const { fence, sentAt } = await this.#acquire(name, token, wait);
    if (this.#closed.signal.aborted) {
      await this.#free(name, token);
      throw closedError();
    }
    const control = new AbortController();
    const length = this.#parts.lockTimeout;
    const onLost = (): void => {
      control.abort(new ChronosError('LOCK_LOST', `the lock '${name}' was lost`));
    };
    const request = { kind: 'named', id: name, token, length, sentAt, onLost } as const;
    const held = this.hold([{ ...request, runsFor: Infinity, buffered: false }]);
    try {
      // The process may have been frozen while the answer was on its way.
      if (!held.every((one) => this.isValid(one))) onLost();
      control.signal.throwIfAborted();
      return await fn({ name, fence, signal: control.signal });
    } finally {
      for (const one of held) this.release(one);
      await this.#free(name, token);
    }
  }

  /** What `fn` came to counts, not whether its lock could be freed: unrenewed, it runs out by itself. */
  async #free(name: string, token: string): Promise<void> {
    await this.#parts.store.releaseLock(name, token).catch((error: unknown) => {
      this.events.emit('worker:trouble', {
        operation: 'release a lock',
        error: withoutCredentials(toError(error)),
        failures: 1,
        retryIn: 0,
      });
    });
  }

  async #acquire(name: string, token: string, wait: number): Promise<{ fence: number; sentAt: number }> {
    const { clock } = this;
    const { store, workerId, lockTimeout } = this.#parts;
    const end = clock.monotonic() + wait;
    for (let pause = 20; ; pause = Math.min(1000, pause * 2)) {
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
      if (this.#closed.signal.aborted) throw closedError();
    }
    const holder = await store.findLock(name);
    throw new ChronosError(
      'LOCK_HELD',
      `the lock '${name}' is held by ${holder?.lockedBy ?? 'another process'} until ${holder?.lockedUntil.toISOString() ?? 'an unknown time'}, unless it is renewed`,
    );
  }

  #keep(leases: readonly HeldLease[]): void {
    if (leases.length === 0) return;
    for (const held of leases) held.isKept = true;
    this.#parts.renewer.keep(leases);
  }

  #lose(held: HeldLease, kind: LossKind): void {
    if (!this.#held.has(held)) return;
    this.release(held);
    held.onLost(kind);
  }
}

function closedError(): ChronosError {
  return new ChronosError('WRONG_STATE', 'the scheduler was stopped meanwhile');
}

/** A fifth of the lease is left for clocks that differ and for the handler to stop. */
function deadline(lease: KeptLease): number {
  return lease.renewedAt + lease.length * 0.8;
}
