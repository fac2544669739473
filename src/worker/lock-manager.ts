import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { ClockAnchor } from '../runtime/database-clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { Lease } from '../store/renew.js';
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

export interface LockManagerParts {
  clock: Clock;
  events: EventBus;
  renewer: Renewer;
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
  #renewing: Promise<void> | undefined;
  #isClosed = false;
  /** The shortest lease at the last round: the rounds follow it. */
  #shortest = Infinity;

  constructor(parts: LockManagerParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
  }

  /** Starts renewal; resolves when it is ready. */
  open(): Promise<void> {
    if (this.#isClosed)
      return Promise.reject(new ChronosError('WRONG_STATE', 'the scheduler was stopped meanwhile'));
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

  /** Ends renewal, for good: the last thing to stop, after every lock was given up. */
  async close(): Promise<void> {
    this.#isClosed = true;
    // Also one that is still starting: it is not waited for.
    await this.#parts.renewer.stop();
    await this.#renewing?.catch(() => undefined);
    await this.stop();
    this.#renewing = undefined;
    for (const held of [...this.#held]) this.#lose(held, 'overdue');
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

/** A fifth of the lease is left for clocks that differ and for the handler to stop. */
function deadline(lease: KeptLease): number {
  return lease.renewedAt + lease.length * 0.8;
}
