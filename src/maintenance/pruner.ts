import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { Store } from '../store/store.js';

const BATCH = 5000;
/** Occurrences of schedules are kept at least this long, in milliseconds. */
const OCCURRENCES_KEPT = 3_600_000;

export interface PruneCounts {
  /** Finished jobs past their retention. */
  finished: number;
  /** Jobs that were due, of task types nobody has a handler for. */
  orphans: number;
  /** Jobs whose lock expired, recovered by nobody. */
  expired: number;
}

type PruneStore = Pick<Store, 'pruneFinished' | 'pruneOrphans' | 'pruneExpired' | 'findListedTaskTypes'>;

export interface PrunerParts {
  clock: Clock;
  events: EventBus;
  store: PruneStore;
  options: Pick<ResolvedOptions, 'retention' | 'pruneInterval'>;
  taskTypes: () => readonly string[];
  /** Whether these are handlers of the application: without any, this process knows nothing about who has them. */
  knowsHandlers: () => boolean;
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
    await this.#pruneFinished(this.#parts.options.retention, () => this.stopping);
    return this.#parts.options.pruneInterval;
  }

  async pruneByRetention(): Promise<PruneCounts> {
    return { finished: await this.#pruneFinished(this.#parts.options.retention), orphans: 0, expired: 0 };
  }

  /** Finished jobs, orphans and jobs with an expired lock, all older than `age` milliseconds. */
  async pruneOlderThan(age: number): Promise<PruneCounts> {
    const { store } = this.#parts;
    const before = this.#before(age);
    const finished = await this.#pruneFinished({ completed: age, failed: age, cancelled: age });
    const listed = await store.findListedTaskTypes();
    const known = [...listed, ...this.#parts.taskTypes()];
    // Where no worker was seen for a day nothing is known about who has handlers, and nothing is an orphan.
    const isKnown = listed.length > 0 || this.#parts.knowsHandlers();
    const orphans = isKnown ? await inBatches(() => store.pruneOrphans(known, before, BATCH)) : 0;
    return { finished, orphans, expired: await inBatches(() => store.pruneExpired(before, BATCH)) };
  }

  async #pruneFinished(ages: ResolvedOptions['retention'], stopped = (): boolean => false): Promise<number> {
    const { store } = this.#parts;
    let count = 0;
    for (const [status, age] of [
      ['COMPLETED', ages.completed],
      ['FAILED', ages.failed],
      ['CANCELLED', ages.cancelled],
    ] as const) {
      const before = this.#before(age);
      const occurrences = this.#before(OCCURRENCES_KEPT);
      count += await inBatches(() => store.pruneFinished(status, before, occurrences, BATCH), stopped);
    }
    return count;
  }

  #before(age: number): Date {
    return new Date(this.clock.now().getTime() - age);
  }
}

async function inBatches(prune: () => Promise<number>, stopped = (): boolean => false): Promise<number> {
  let count = 0;
  for (let batch = BATCH; batch > 0 && !stopped(); count += batch) batch = await prune();
  return count;
}
