import type { Clock } from '../domain/clock.js';
import { toError, withoutCredentials } from '../domain/errors.js';
import { groupBy } from '../domain/group-by.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { Store } from '../store/store.js';
import type { ClaimedJob, DoubtfulClaim } from './claimed-job.js';

const IDLE = 60_000;
const PAUSE = 1000;

type GiveBack = Pick<Store, 'giveBack' | 'giveBackByToken'>;

/**
 * Claims whose jobs do not run here: the reply was lost, or came too late. They are given back by their token, again
 * and again until their lock has run out, because the claim itself may still be on its way to the server.
 */
export class DoubtfulClaims extends PeriodicService {
  readonly name = 'give back doubtful claims';
  readonly #store: GiveBack;
  readonly #claims = new Map<DoubtfulClaim, number>();
  readonly #underWay = new Set<Promise<void>>();

  constructor(clock: Clock, events: EventBus, store: GiveBack) {
    super(clock, events);
    this.#store = store;
  }

  add(claim: DoubtfulClaim): void {
    this.#claims.set(claim, this.clock.monotonic() + claim.lease);
    this.wake();
  }

  /** Returns jobs that are locked here and will not run here; what cannot be returned now is doubtful from then on. */
  giveBack(claimed: readonly ClaimedJob[]): Promise<void> {
    const given = this.#giveBack(claimed).finally(() => this.#underWay.delete(given));
    this.#underWay.add(given);
    return given;
  }

  /** The last try, when everything else has stopped. */
  async finish(): Promise<void> {
    await Promise.all(this.#underWay);
    await this.runOnce().catch(() => undefined);
  }

  async #giveBack(claimed: readonly ClaimedJob[]): Promise<void> {
    for (const [token, jobs] of groupBy(claimed, (one) => one.token)) {
      const ids = jobs.map(({ job }) => job._id);
      try {
        await this.#store.giveBack(token, ids, this.clock.now());
      } catch (thrown) {
        const error = withoutCredentials(toError(thrown));
        this.events.emit('worker:trouble', { operation: 'give back', error, failures: 1, retryIn: PAUSE });
        this.add({ token, ids, lease: jobs[0].lease });
      }
    }
  }

  async runOnce(): Promise<number> {
    for (const [claim, until] of [...this.#claims]) {
      const now = this.clock.now();
      if (claim.ids === undefined) await this.#store.giveBackByToken(claim.token, now);
      else await this.#store.giveBack(claim.token, claim.ids, now);
      if (this.clock.monotonic() >= until) this.#claims.delete(claim);
    }
    return this.#claims.size > 0 ? PAUSE : IDLE;
  }
}
