import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { Lease } from '../store/renew.js';
import { renewalDueAt, slackOf, type KeptLease, type RenewalReport } from './renewer.js';

const IDLE = 60_000;

export type RenewLeases = (leases: readonly Lease[], now: Date) => Promise<Lease[]>;

export interface RenewalLoopParts {
  clock: Clock;
  events: EventBus;
  /** What is to be kept now. */
  leases: () => Iterable<KeptLease>;
  /** Returns those that are gone. */
  renew: RenewLeases;
  report: Pick<RenewalReport, 'renewed' | 'lost'>;
}

/** Renews every lease at a third of its length. The same loop runs in the renewal thread and in process. */
export class RenewalLoop extends PeriodicService {
  readonly name = 'renew locks';
  readonly #parts: RenewalLoopParts;
  #lastBeat: number;
  #plannedFor = Infinity;
  #lookEvery = IDLE;
  #hadWork = false;

  constructor(parts: RenewalLoopParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
    this.#lastBeat = parts.clock.monotonic();
  }

  /** There is a lease now that is due then. */
  expect(dueAt: number): void {
    if (dueAt < this.#plannedFor) this.wake();
  }

  /** There may be leases this short, in milliseconds, that nobody tells of one by one. */
  lookFor(length: number): void {
    this.#lookEvery = slackOf(length);
    this.wake();
  }

  beat(): void {
    this.#lastBeat = this.clock.monotonic();
  }

  async runOnce(): Promise<number> {
    const { leases, renew, report } = this.#parts;
    const sentAt = this.clock.monotonic();
    const due = [...leases()].filter(
      (lease) => sentAt >= renewalDueAt(lease) - slackOf(lease.length) && this.#deserves(lease, sentAt),
    );
    this.#hadWork = due.length > 0;
    if (this.#hadWork) {
      const gone = new Set<Lease>(await renew(due, this.clock.now()));
      for (const lease of due) lease.renewedAt = sentAt;
      const renewed = due.filter((lease) => !gone.has(lease));
      if (renewed.length > 0) report.renewed(renewed, sentAt);
      if (gone.size > 0) report.lost(due.filter((lease) => gone.has(lease)));
    }
    this.#plannedFor = this.#nextAt();
    return Math.max(0, this.#plannedFor - this.clock.monotonic());
  }

  protected override get longestRetry(): number {
    return Math.min(super.longestRetry, ...[...this.#parts.leases()].map(({ length }) => length / 6));
  }

  protected override isProof(): boolean {
    return this.#hadWork;
  }

  #deserves(lease: KeptLease, now: number): boolean {
    if (lease.buffered) return now - this.#lastBeat < lease.length / 3;
    return now < lease.renewUntil;
  }

  #nextAt(): number {
    const now = this.clock.monotonic();
    let next = now + this.#lookEvery;
    for (const lease of this.#parts.leases()) {
      const dueAt = renewalDueAt(lease);
      // One that is due and yet does not deserve renewal is looked at again in a while: a beat may come.
      const isWaiting = dueAt <= now && !this.#deserves(lease, now);
      next = Math.min(next, isWaiting ? now + slackOf(lease.length) : dueAt);
    }
    return next;
  }
}
