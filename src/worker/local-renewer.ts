import type { Clock } from '../domain/clock.js';
import { EventBus } from '../runtime/event-bus.js';
import { RenewalLoop, type RenewLeases } from './renewal-loop.js';
import { renewalDueAt, type KeptLease, type Renewer, type RenewalReport } from './renewer.js';

/** Renews in this thread. */
export class LocalRenewer implements Renewer {
  readonly #clock: Clock;
  readonly #renew: RenewLeases;
  readonly #leases = new Set<KeptLease>();
  #loop: RenewalLoop | undefined;

  constructor(clock: Clock, renew: RenewLeases) {
    this.#clock = clock;
    this.#renew = renew;
  }

  start(report: RenewalReport): Promise<void> {
    const events = new EventBus();
    events.on('worker:trouble', ({ error, failures, retryIn }) => {
      report.trouble(error, failures, retryIn);
    });
    events.on('worker:recovered', ({ failures }) => report.recovered(failures));
    const [clock, renew, leases] = [this.#clock, this.#renew, () => this.#leases];
    this.#loop = new RenewalLoop({ clock, events, leases, renew, report });
    this.#loop.start();
    return Promise.resolve();
  }

  keep(leases: readonly KeptLease[]): void {
    for (const lease of leases) {
      this.#leases.add(lease);
      this.#loop?.expect(renewalDueAt(lease));
    }
  }

  drop(lease: KeptLease): void {
    this.#leases.delete(lease);
  }

  beat(): void {
    this.#loop?.beat();
  }

  drain(): void {
    // Reports are delivered as they are made.
  }

  async stop(): Promise<void> {
    await this.#loop?.stop();
    this.#loop = undefined;
    this.#leases.clear();
  }
}
