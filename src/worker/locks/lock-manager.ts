import type { Clock } from '../../domain/clock.js';
import { ChronosError } from '../../domain/errors.js';
import type { EventBus } from '../../runtime/event-bus.js';
import type { OutageMonitor } from '../../runtime/outage-monitor.js';
import { PeriodicService } from '../../runtime/periodic-service.js';
import type { Lease } from '../../store/jobs/renew.js';
import type { TrackedLease, Renewer } from './lock-renewer.js';

/** Enough for one operation that hangs, and another try. */
const MIN_TIME_TO_SETTLE_MS = 15_000;

/** How long to wait for a renewal in progress. */
const MAX_CLOSE_MS = 6000;

/** `taken`: another worker has the lock. `expired`: it was not renewed in time, so another worker may soon take it. */
export type LockLossReason = 'taken' | 'expired';

export interface HoldRequest extends Lease {
  /** Monotonic time from before the request that acquired the lock was sent. */
  sentAt: number;
  /** Milliseconds, from the start of the handler, for which the lock is renewed. */
  runsFor: number;
  /** The handler has not started. */
  prefetched: boolean;
  onLost: (reason: LockLossReason) => void;
}

/** A lock of this process; see `isValid` for whether it still holds it. */
export interface HeldLease extends TrackedLease, Readonly<Pick<HoldRequest, 'runsFor' | 'onLost'>> {
  /** The renewer tracks it. */
  isTracked: boolean;
  /** The handler has ended, and its outcome is not stored yet. */
  awaitsOutcome: boolean;
}

export interface LockManagerDeps {
  clock: Clock;
  events: EventBus;
  renewer: Renewer;
  lockTimeout: number;
  outages: OutageMonitor;
}

/**
 * Holds every lock of this process; the renewer extends them. The manager has its own deadline for each lock, counted on
 * the monotonic clock from before the last confirmed renewal was sent, and ends the work well before the lock expires.
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
      return Promise.reject(new ChronosError('WRONG_STATE', 'the scheduler was stopped during this call'));
    this.#renewing ??= this.#deps.renewer
      .start({
        renewed: (leases, sentAt) => {
          for (const lease of leases) lease.renewedAt = Math.max(lease.renewedAt, sentAt);
          this.events.measure('renewal', { locks: leases.length });
        },
        lost: (leases) => {
          const lost = new Set(leases);
          for (const held of [...this.#held]) if (lost.has(held)) this.#lose(held, 'taken');
        },
        error: (error, failures, retryIn) => {
          this.#deps.outages.recordFailure();
          this.events.reportError('renew locks', error, { failures, retryIn });
        },
        recovered: (failures) => this.events.emit('worker:recovered', { operation: 'renew locks', failures }),
      })
      .then(() => this.start());
    this.#renewing.catch(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  /** Ends renewal for good. Call it last, after every lock was released. */
  async close(timeout = MAX_CLOSE_MS): Promise<void> {
    this.#isClosed = true;
    // The renewer may still be starting; this stops it, too.
    await this.#deps.renewer.stop(timeout);
    await this.#renewing?.catch(() => undefined);
    await this.stop();
    this.#renewing = undefined;
    for (const held of [...this.#held]) this.#lose(held, 'expired');
  }

  hold(requests: readonly HoldRequest[]): HeldLease[] {
    const now = this.clock.monotonic();
    const held = requests.map((request) => toHeldLease(request, now));
    for (const one of held) this.#held.add(one);
    this.#track(held.filter(({ prefetched }) => !prefetched));
    // The next check was planned for longer leases.
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

  /**
   * The handler has ended. If its outcome is not stored within the length of the lease, the lock is not renewed any more,
   * so that another worker can run the job: the connection of the renewer may work while nothing can be stored here.
   */
  markEnded(lease: HeldLease): void {
    if (!this.#held.has(lease)) return;
    const limit = this.clock.monotonic() + Math.max(lease.length, MIN_TIME_TO_SETTLE_MS);
    lease.renewUntil = Math.min(lease.renewUntil, limit);
    lease.prefetched = false;
    lease.awaitsOutcome = true;
    if (lease.isTracked) this.#track([lease]);
  }

  /** True while no other worker can have taken the lock. */
  isValid(lease: HeldLease): boolean {
    return this.#held.has(lease) && this.clock.monotonic() < deadline(lease);
  }

  release(held: HeldLease): void {
    if (this.#held.delete(held) && held.isTracked) this.#deps.renewer.untrack(held);
  }

  /** Sends the renewer a heartbeat, reads its reports, then checks the deadlines. */
  runOnce(): Promise<number> {
    const { renewer, lockTimeout } = this.#deps;
    renewer.heartbeat();
    renewer.flushReports();
    const now = this.clock.monotonic();
    this.#shortestLease = lockTimeout;
    this.#reportMissingOutcomes(now);
    for (const lease of this.#held) {
      this.#shortestLease = Math.min(this.#shortestLease, lease.length);
      if (now >= deadline(lease)) this.#lose(lease, 'expired');
    }
    // Prefetched jobs are tracked only now: most start and end before the renewer needs to know them.
    this.#track([...this.#held].filter(({ isTracked }) => !isTracked));
    return Promise.resolve(this.#shortestLease / 12);
  }

  #reportMissingOutcomes(now: number): void {
    const late = [...this.#held].filter(
      ({ awaitsOutcome, renewUntil }) => awaitsOutcome && now >= renewUntil,
    );
    const [first] = late;
    if (first === undefined) return;
    for (const lease of late) lease.awaitsOutcome = false;
    const others = late.length === 1 ? '' : ` (and of ${late.length - 1} other jobs)`;
    const message =
      `the outcome of job '${first.id}'${others} could not be stored in time: ` +
      'its lock is not renewed any more, so that another worker can run it again';
    this.events.reportError(this.name, new ChronosError('LOCK_LOST', message), { subject: first.id });
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

function toHeldLease(request: HoldRequest, now: number): HeldLease {
  const { kind, id, token, length, sentAt: renewedAt, runsFor, prefetched, onLost } = request;
  const renewUntil = now + runsFor;
  return {
    kind,
    id,
    token,
    length,
    renewedAt,
    renewUntil,
    prefetched,
    runsFor,
    onLost,
    isTracked: false,
    awaitsOutcome: false,
  };
}

/** A fifth of the lease is left for clock differences and for the handler to stop. */
function deadline(lease: TrackedLease): number {
  return lease.renewedAt + lease.length * 0.8;
}
