import type { Clock } from '../domain/clock.js';
import { EventBus } from '../runtime/event-bus.js';
import { RenewalLoop, type RenewLeases } from './renewal-loop.js';
import type { KeptLease, Renewer, RenewalReport } from './renewer.js';

/** Renews in this thread. */
export class LocalRenewer implements Renewer {
  readonly #clock: Clock;
  readonly #renew: RenewLeases;
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
    this.#loop = new RenewalLoop(this.#clock, events, this.#renew, report);
    this.#loop.start();
    return Promise.resolve();
  }

  keep(leases: readonly KeptLease[]): void {
    this.#loop?.keep(leases.map((lease) => ({ ...lease })));
  }

  drop(keys: readonly string[]): void {
    this.#loop?.drop(keys);
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
  }
}
