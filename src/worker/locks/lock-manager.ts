import type { Clock } from '../../domain/clock.js';
import { ChronosError } from '../../domain/errors.js';
import type { EventBus } from '../../runtime/event-bus.js';
import type { OutageMonitor } from '../../runtime/outage-monitor.js';
import { PeriodicService } from '../../runtime/periodic-service.js';
import type { Lease } from '../../store/jobs/renew.js';
import type { TrackedLease, Renewer } from './lock-renewer.js';

/** `taken`: another worker has the lock. `expired`: it was not renewed in time, so another worker may take it soon. */
export type LockLossReason = 'taken' | 'expired';

/** A lock that this process holds, or held. */
export interface HeldLease extends TrackedLease {
  readonly runsFor: number;
  readonly onLost: (reason: LockLossReason) => void;
  /** The renewer tracks it. */
  isTracked: boolean;
}

export interface HoldRequest extends Lease {
  /** Monotonic time from before the request that took the lock was sent. */
  sentAt: number;
  /** Milliseconds from the start of the work during which it is renewed. */
  runsFor: number;
  /** The work has not started. */
  prefetched: boolean;
  onLost: (reason: LockLossReason) => void;
}

export interface LockManagerDeps {
  clock: Clock;
  events: EventBus;
  renewer: Renewer;
  lockTimeout: number;
  outages: OutageMonitor;
}

/**
 * Holds every lock of this process. The renewer extends them. This side has its own deadline for each, counted by the
 * monotonic clock from before the last confirmed renewal was sent, and gives a lock up well before others may take it.
 */
export class LockManager extends PeriodicService {
  readonly name = 'check locks';
  readonly #held = new Set<HeldLease>();
  readonly #deps: LockManagerDeps;
  #renewing: Promise<void> | undefined;
  #isClosed = false;
  /** The shortest lease in the last round; it decides how often the locks are checked. */
  #shortestLease = Infinity;

  constructor(deps: LockManagerDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
  }

  /** Starts renewal; resolves when it is ready. */
  open(): Promise<void> {
    if (this.#isClosed)
      return Promise.reject(new ChronosError('WRONG_STATE', 'the scheduler was stopped meanwhile'));
    this.#renewing ??= this.#deps.renewer
      .start({
        renewed: (leases, sentAt) => {
          for (const lease of leases) lease.renewedAt = Math.max(lease.renewedAt, sentAt);
          this.events.emit('worker:renewed', { locks: leases.length });
        },
        lost: (leases) => {
          const lost = new Set(leases);
          for (const held of [...this.#held]) if (lost.has(held)) this.#lose(held, 'taken');
        },
        error: (error, failures, retryIn) => {
          this.#deps.outages.recordFailure();
          this.events.reportError('renew locks', error, { failures, retryIn });
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

  /** Ends renewal for good. The last thing to stop, after every lock was released. */
  async close(): Promise<void> {
    this.#isClosed = true;
    // Also a renewer that is still starting.
    await this.#deps.renewer.stop();
    await this.#renewing?.catch(() => undefined);
    await this.stop();
    this.#renewing = undefined;
    for (const held of [...this.#held]) this.#lose(held, 'expired');
  }

  hold(requests: readonly HoldRequest[]): HeldLease[] {
    const now = this.clock.monotonic();
    const held = requests.map(
      ({ kind, id, token, length, sentAt, runsFor, prefetched, onLost }): HeldLease => ({
        kind,
        id,
        token,
        length,
        renewedAt: sentAt,
        renewUntil: now + runsFor,
        prefetched,
        runsFor,
        onLost,
        isTracked: false,
      }),
    );
    for (const one of held) this.#held.add(one);
    this.#track(held.filter(({ prefetched }) => !prefetched));
    // The next round was planned for longer leases.
    if (held.some(({ length }) => length < this.#shortestLease)) this.wake();
    return held;
  }

  /** Prefetched jobs are about to start: from now on they are renewed even if a handler blocks this thread. */
  markStarted(leases: readonly HeldLease[]): void {
    const now = this.clock.monotonic();
    for (const lease of leases) {
      lease.prefetched = false;
      lease.renewUntil = now + lease.runsFor;
    }
    this.#track(leases.filter((lease) => this.#held.has(lease)));
  }

  /** True while no other worker can have taken the lock. */
  isValid(lease: HeldLease): boolean {
    return this.#held.has(lease) && this.clock.monotonic() < deadline(lease);
  }

  release(held: HeldLease): void {
    if (this.#held.delete(held) && held.isTracked) this.#deps.renewer.untrack(held);
  }

  /** Shows the renewer that this thread is alive, reads its reports, then checks the deadlines. */
  runOnce(): Promise<number> {
    const { renewer, lockTimeout } = this.#deps;
    renewer.heartbeat();
    renewer.flushReports();
    const now = this.clock.monotonic();
    this.#shortestLease = lockTimeout;
    for (const lease of this.#held) {
      this.#shortestLease = Math.min(this.#shortestLease, lease.length);
      if (now >= deadline(lease)) this.#lose(lease, 'expired');
    }
    // Prefetched jobs are tracked only now: most have started before the renewer needs to know them.
    this.#track([...this.#held].filter(({ isTracked }) => !isTracked));
    return Promise.resolve(this.#shortestLease / 12);
  }

  #track(leases: readonly HeldLease[]): void {
    if (leases.length === 0) return;
    for (const held of leases) held.isTracked = true;
    this.#deps.renewer.track(leases);
  }

  #lose(held: HeldLease, reason: LockLossReason): void {
    if (!this.#held.has(held)) return;
    this.release(held);
    held.onLost(reason);
  }
}

/** A fifth of the lease is left for clock differences and for the handler to stop. */
function deadline(lease: TrackedLease): number {
  return lease.renewedAt + lease.length * 0.8;
}
