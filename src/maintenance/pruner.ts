import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { Store } from '../store/store.js';

export interface PruneCounts {
  /** Finished jobs past their retention. */
  finished: number;
  /** Jobs that were due, of task types nobody has a handler for. */
  orphans: number;
  /** Jobs whose lock expired, recovered by nobody. */
  expired: number;
}

type PruneStore = Pick<Store, 'pruneFinished' | 'pruneOrphans' | 'pruneExpired' | 'findLiveTaskTypes'>;

export interface PrunerParts {
  clock: Clock;
  events: EventBus;
  store: PruneStore;
  options: Pick<ResolvedOptions, 'retention' | 'pruneInterval' | 'heartbeatInterval'>;
  taskTypes: () => readonly string[];
}

/** Removes finished jobs past their retention. Everything else goes only when a person says how old is old. */
export class Pruner extends PeriodicService {
  readonly name = 'prune';
  readonly #parts: PrunerParts;

  constructor(parts: PrunerParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
  }

  async runOnce(): Promise<number> {
    await this.pruneByRetention();
    return this.#parts.options.pruneInterval;
  }

  async pruneByRetention(): Promise<PruneCounts> {
    const { completed, failed, cancelled } = this.#parts.options.retention;
    return { finished: await this.#pruneFinished(completed, failed, cancelled), orphans: 0, expired: 0 };
  }

  /** Finished jobs, orphans and jobs with an expired lock, all older than `age` milliseconds. */
  async pruneOlderThan(age: number): Promise<PruneCounts> {
    const { store, options, taskTypes } = this.#parts;
    const before = this.#before(age);
    const finished = await this.#pruneFinished(age, age, age);
    const live = await store.findLiveTaskTypes(this.#before(options.heartbeatInterval * 3));
    const orphans = await store.pruneOrphans([...live, ...taskTypes()], before);
    return { finished, orphans, expired: await store.pruneExpired(before) };
  }

  async #pruneFinished(completed: number, failed: number, cancelled: number): Promise<number> {
    const { store } = this.#parts;
    return (
      (await store.pruneFinished('COMPLETED', this.#before(completed))) +
      (await store.pruneFinished('FAILED', this.#before(failed))) +
      (await store.pruneFinished('CANCELLED', this.#before(cancelled)))
    );
  }

  #before(age: number): Date {
    return new Date(this.clock.now().getTime() - age);
  }
}
