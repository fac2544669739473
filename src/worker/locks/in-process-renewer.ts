import type { Clock } from '../../domain/clock.js';
import { EventBus } from '../../runtime/event-bus.js';
import { whenSettled } from '../../runtime/waiting.js';
import {
  type TrackedLease,
  renewalDueAt,
  RenewalLoop,
  type RenewalReport,
  type Renewer,
  type RenewLeases,
} from './lock-renewer.js';

/** Renews in this thread: for clocks and clients of the application, which a thread cannot share. */
export class InProcessRenewer implements Renewer {
  readonly #clock: Clock;
  readonly #renew: RenewLeases;
  readonly #leases = new Set<TrackedLease>();
  #loop: RenewalLoop | undefined;

  constructor(clock: Clock, renew: RenewLeases) {
    this.#clock = clock;
    this.#renew = renew;
  }

  start(report: RenewalReport): Promise<void> {
    const events = new EventBus('worker');
    events.on('worker:error', ({ error, failures, retryIn }) => report.error(error, failures, retryIn));
    events.on('worker:recovered', ({ failures }) => report.recovered(failures));
    const leases = (): Set<TrackedLease> => this.#leases;
    this.#loop = new RenewalLoop({ clock: this.#clock, events, leases, renew: this.#renew, report });
    this.#loop.start();
    return Promise.resolve();
  }

  track(leases: readonly TrackedLease[]): void {
    for (const lease of leases) {
      this.#leases.add(lease);
      this.#loop?.renewBy(renewalDueAt(lease));
    }
  }

  untrack(lease: TrackedLease): void {
    this.#leases.delete(lease);
  }

  heartbeat(): void {
    this.#loop?.heartbeat();
  }

  flushReports(): void {
    // Reports are never queued here.
  }

  async stop(timeout: number): Promise<void> {
    if (this.#loop !== undefined) await whenSettled(timeout, this.#loop.stop());
    this.#loop = undefined;
    this.#leases.clear();
  }
}
