import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { Lease } from '../store/renew.js';
import { leaseKey, type KeptLease, type RenewalReport } from './renewer.js';

const IDLE = 60_000;

export type RenewLeases = (leases: readonly Lease[], now: Date) => Promise<Lease[]>;

/** Renews every lease at a third of its length. The same loop runs in the renewal thread and in process. */
export class RenewalLoop extends PeriodicService {
  readonly name = 'renew locks';
  readonly #leases = new Map<string, KeptLease>();
  readonly #renew: RenewLeases;
  readonly #report: Pick<RenewalReport, 'renewed' | 'lost'>;
  #lastBeat: number;
  #plannedFor = Infinity;

  constructor(
    clock: Clock,
    events: EventBus,
    renew: RenewLeases,
    report: Pick<RenewalReport, 'renewed' | 'lost'>,
  ) {
    super(clock, events);
    this.#renew = renew;
    this.#report = report;
    this.#lastBeat = clock.monotonic();
  }

  keep(leases: readonly KeptLease[]): void {
    for (const lease of leases) this.#leases.set(lease.key, lease);
    if (leases.some((lease) => dueAt(lease) < this.#plannedFor)) this.wake();
  }

  drop(keys: readonly string[]): void {
    for (const key of keys) this.#leases.delete(key);
  }

  beat(): void {
    this.#lastBeat = this.clock.monotonic();
  }

  async runOnce(): Promise<number> {
    const sentAt = this.clock.monotonic();
    const due = [...this.#leases.values()].filter(
      (lease) => sentAt >= dueAt(lease) - slack(lease) && this.#deserves(lease, sentAt),
    );
    if (due.length > 0) {
      const gone = new Set(
        (await this.#renew(due, this.clock.now())).map(({ id, token }) => leaseKey(id, token)),
      );
      for (const lease of due) lease.renewedAt = sentAt;
      this.drop([...gone]);
      const renewed = due.map(({ key }) => key).filter((key) => !gone.has(key));
      if (renewed.length > 0) this.#report.renewed(renewed, sentAt);
      if (gone.size > 0) this.#report.lost([...gone]);
    }
    this.#plannedFor = this.#nextAt();
    return this.#plannedFor - this.clock.monotonic();
  }

  protected override get longestRetry(): number {
    return Math.min(super.longestRetry, ...[...this.#leases.values()].map(({ length }) => length / 6));
  }

  #deserves(lease: KeptLease, now: number): boolean {
    if (lease.buffered) return now - this.#lastBeat < lease.length / 3;
    return now < lease.renewUntil;
  }

  #nextAt(): number {
    const now = this.clock.monotonic();
    let next = now + IDLE;
    for (const lease of this.#leases.values()) {
      // One that is due and yet does not deserve renewal is looked at again in a while: a beat may come.
      next = Math.min(next, dueAt(lease) > now ? dueAt(lease) : now + slack(lease));
    }
    return next;
  }
}

function dueAt(lease: KeptLease): number {
  return lease.renewedAt + lease.length / 3;
}

/** Leases due this soon are renewed along with the ones that are due. */
function slack(lease: KeptLease): number {
  return lease.length / 12;
}
