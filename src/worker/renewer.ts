import type { ClockAnchor } from '../runtime/database-clock.js';
import type { Lease } from '../store/renew.js';

/** A lease as the renewer keeps it. Told apart by identity: the same job may be locked twice, one after the other. */
export interface KeptLease extends Lease {
  /** Monotonic time of the last renewal, taken before its request was sent. */
  renewedAt: number;
  /** Monotonic time past which it is not renewed any more: its handler had its time-out and its grace. */
  renewUntil: number;
  /** Not started yet: only renewed while the main thread shows that it lives. */
  buffered: boolean;
}

/** A lease is due for renewal when a third of it has passed. */
export function renewalDueAt({ renewedAt, length }: KeptLease): number {
  return renewedAt + length / 3;
}

/** Leases due this soon are renewed along with the ones that are due. */
export function slackOf(length: number): number {
  return length / 12;
}

export interface RenewalReport {
  /** Confirmed, with the monotonic time from before the request was sent. */
  renewed(leases: readonly KeptLease[], sentAt: number): void;
  /** The lock is somebody else's. */
  lost(leases: readonly KeptLease[]): void;
  trouble(error: Error, failures: number, retryIn: number): void;
  /** Renewal works again. */
  recovered(failures: number): void;
}

/**
 * Where renewal happens. In production in a thread of its own, so that neither a handler that blocks the event
 * loop nor one that holds every connection starves it; in this thread where the clock is moved by hand.
 */
export interface Renewer {
  start(report: RenewalReport): Promise<void>;
  /** Keeps them from now on, or as they are now. */
  keep(leases: readonly KeptLease[]): void;
  drop(lease: KeptLease): void;
  /** Shows that the main thread lives, and hands over its measure of the database's time. */
  beat(anchor: ClockAnchor | undefined): void;
  /** Delivers what was reported and not yet handled, before anybody judges by it. */
  drain(): void;
  stop(): Promise<void>;
}
