import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import type { FinishedStatus } from '../domain/job.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { Count } from '../store/list-jobs.js';
import type { Store } from '../store/store.js';

const BATCH = 5000;
const NOTHING: Count = { count: 0, atLeast: false };
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

type PruneStore = Pick<
  Store,
  | ('pruneFinished' | 'pruneOrphans' | 'pruneExpired' | 'findListedTaskTypes')
  | ('countFinishedBefore' | 'countOrphansBefore' | 'countExpiredBefore')
>;

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
    const finished = await this.#pruneFinished(everyStatus(age));
    const known = await this.#knownTypes();
    const orphans = known === null ? 0 : await inBatches(() => store.pruneOrphans(known, before, BATCH));
    return { finished, orphans, expired: await inBatches(() => store.pruneExpired(before, BATCH)) };
  }

  /** How many jobs either of these would remove, counted as far as `most`. */
  async count(age: number | undefined, most: number): Promise<Record<keyof PruneCounts, Count>> {
    const { store, options } = this.#parts;
    const ages = agesOf(age === undefined ? options.retention : everyStatus(age));
    const occurrences = this.#before(OCCURRENCES_KEPT);
    const counted = await Promise.all(
      ages.map(([status, kept]) => store.countFinishedBefore(status, this.#before(kept), occurrences, most)),
    );
    const finished = counted.reduce((total, { count, atLeast }) => ({
      count: total.count + count,
      atLeast: total.atLeast || atLeast,
    }));
    if (age === undefined) return { finished, orphans: NOTHING, expired: NOTHING };
    const before = this.#before(age);
    const known = await this.#knownTypes();
    const orphans = known === null ? NOTHING : await store.countOrphansBefore(known, before, most);
    return { finished, orphans, expired: await store.countExpiredBefore(before, most) };
  }

  /** Null where no worker was seen for a day: nothing is known about who has handlers then, and nothing is an orphan. */
  async #knownTypes(): Promise<string[] | null> {
    const listed = await this.#parts.store.findListedTaskTypes();
    const isKnown = listed.length > 0 || this.#parts.knowsHandlers();
    return isKnown ? [...listed, ...this.#parts.taskTypes()] : null;
  }

  async #pruneFinished(ages: ResolvedOptions['retention'], stopped = (): boolean => false): Promise<number> {
    const { store } = this.#parts;
    let count = 0;
    for (const [status, age] of agesOf(ages)) {
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

type Ages = ResolvedOptions['retention'];

function everyStatus(age: number): Ages {
  return { completed: age, failed: age, cancelled: age };
}

function agesOf({ completed, failed, cancelled }: Ages): [FinishedStatus, number][] {
  return [
    ['COMPLETED', completed],
    ['FAILED', failed],
    ['CANCELLED', cancelled],
  ];
}

async function inBatches(prune: () => Promise<number>, stopped = (): boolean => false): Promise<number> {
  let count = 0;
  for (let batch = BATCH; batch > 0 && !stopped(); count += batch) batch = await prune();
  return count;
}
