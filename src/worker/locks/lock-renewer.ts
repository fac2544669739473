import type { Clock } from '../../domain/clock.js';
import type { EventBus } from '../../runtime/event-bus.js';
import { PeriodicService } from '../../runtime/periodic-service.js';
import type { Lease } from '../../store/jobs/renew.js';

/** A lease as the renewer sees it. Compared by identity: the same job may be locked twice, one after the other. */
export interface TrackedLease extends Lease {
  /** Monotonic time of the last renewal, taken before its request was sent. */
  renewedAt: number;
  /** Monotonic time after which it is not renewed: the handler has used its timeout and grace time, or its outcome could not be stored for long. */
  renewUntil: number;
  /** Not started yet: renewed only while the main thread sends heartbeats. */
  prefetched: boolean;
}

/** A lease is due for renewal when a third of it has passed. */
export function renewalDueAt({ renewedAt, length }: TrackedLease): number {
  return renewedAt + length / 3;
}

/** Leases that become due within this time are renewed together with those that are due. */
export function renewalSlack(length: number): number {
  return length / 12;
}

export interface RenewalReport {
  /** `sentAt`: monotonic time from before the confirmed request was sent. */
  renewed(leases: readonly TrackedLease[], sentAt: number): void;
  /** Another worker has the lock. */
  lost(leases: readonly TrackedLease[]): void;
  error(error: Error, failures: number, retryIn: number): void;
  /** Renewal works again. */
  recovered(failures: number): void;
}

/**
 * Renews leases: in production in a thread with its own connections, so that neither a blocked event loop nor busy
 * connections can prevent it; with a clock or a client of the application that a thread cannot share, in this thread.
 */
export interface Renewer {
  start(report: RenewalReport): Promise<void>;
  /** Renews the leases from now on. Call it again after changing a tracked lease. */
  track(leases: readonly TrackedLease[]): void;
  untrack(lease: TrackedLease): void;
  /** Shows that the main thread is alive. */
  heartbeat(): void;
  /** Delivers reports that have arrived but were not handled yet. */
  flushReports(): void;
  /** `timeout`: milliseconds after which it stops waiting for a renewal in progress. */
  stop(timeout: number): Promise<void>;
}

const IDLE_MS = 60_000;
const MIN_ROUND_LIMIT_MS = 10_000;

export type RenewLeases = (leases: readonly Lease[], now: Date) => Promise<Lease[]>;

export interface RenewalLoopDeps {
  clock: Clock;
  events: EventBus;
  /** The leases that are tracked now. */
  leases: () => Iterable<TrackedLease>;
  /** Returns the lost leases. */
  renew: RenewLeases;
  report: Pick<RenewalReport, 'renewed' | 'lost'>;
}

/** Renews every lease at a third of its length. The same loop runs in the renewal thread and in the main thread. */
export class RenewalLoop extends PeriodicService {
  readonly name = 'renew locks';
  readonly #deps: RenewalLoopDeps;
  #lastHeartbeat: number;
  #plannedFor = Infinity;
  #checkEvery = IDLE_MS;
  #hadWork = false;

  constructor(deps: RenewalLoopDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    this.#lastHeartbeat = deps.clock.monotonic();
  }

  /** Makes sure that a round runs by this monotonic time. */
  renewBy(dueAt: number): void {
    if (dueAt < this.#plannedFor) this.wake();
  }

  /** Checks often enough for leases of this length. The renewal thread is not told about each new lease. */
  expectLeasesOf(length: number): void {
    this.#checkEvery = renewalSlack(length);
    this.wake();
  }

  heartbeat(): void {
    this.#lastHeartbeat = this.clock.monotonic();
  }

  async runOnce(): Promise<number> {
    const { leases, renew, report } = this.#deps;
    const sentAt = this.clock.monotonic();
    const due = [...leases()].filter(
      (lease) =>
        sentAt >= renewalDueAt(lease) - renewalSlack(lease.length) && this.#shouldRenew(lease, sentAt),
    );
    this.#hadWork = due.length > 0;
    if (this.#hadWork) {
      const lost = new Set<Lease>(await renew(due, this.clock.now()));
      // A round that hung and ends late knows older times.
      for (const lease of due) lease.renewedAt = Math.max(lease.renewedAt, sentAt);
      const renewed = due.filter((lease) => !lost.has(lease));
      if (renewed.length > 0) report.renewed(renewed, sentAt);
      if (lost.size > 0) report.lost(due.filter((lease) => lost.has(lease)));
    }
    this.#plannedFor = this.#nextAt();
    return Math.max(0, this.#plannedFor - this.clock.monotonic());
  }

  protected override get maxRetryDelay(): number {
    return Math.min(super.maxRetryDelay, ...[...this.#deps.leases()].map(({ length }) => length / 6));
  }

  /** The locks must not expire while a round hangs. Each operation of a round ends sooner. */
  protected override get maxRoundTime(): number {
    const shortest = Math.min(...[...this.#deps.leases()].map(({ length }) => length));
    return Math.min(super.maxRoundTime, Math.max(MIN_ROUND_LIMIT_MS, shortest / 4));
  }

  protected override provesRecovery(): boolean {
    return this.#hadWork;
  }

  #shouldRenew(lease: TrackedLease, now: number): boolean {
    if (lease.prefetched) return now - this.#lastHeartbeat < lease.length / 3;
    return now < lease.renewUntil;
  }

  #nextAt(): number {
    const now = this.clock.monotonic();
    let next = now + this.#checkEvery;
    for (const lease of this.#deps.leases()) {
      const dueAt = renewalDueAt(lease);
      // A lease that is due but must not be renewed is checked again soon, because a heartbeat may arrive.
      const isWaiting = dueAt <= now && !this.#shouldRenew(lease, now);
      next = Math.min(next, isWaiting ? now + renewalSlack(lease.length) : dueAt);
    }
    return next;
  }
}
