import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { type Duration, parseDuration } from '../domain/duration.js';
import type { FinishedStatus } from '../domain/job/job.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import type { Count } from '../store/jobs/counts.js';
import type { Store } from '../store/store.js';

const BATCH = 5000;
const NOTHING: Count = { count: 0, atLeast: false };
/** Jobs of schedules are kept at least this long: their ids prevent a second job for the same occurrence. */
const KEEP_OCCURRENCES_MS = 3_600_000;

export interface PruneCounts {
  /** Finished jobs past their retention. */
  finished: number;
  /** Due jobs of task types that no worker has a handler for. */
  orphans: number;
  /** Jobs whose lock expired and that no worker has recovered. */
  expired: number;
}

type PruneStore = Pick<
  Store,
  | ('pruneFinished' | 'pruneOrphans' | 'pruneExpired' | 'findListedTaskTypes')
  | ('countFinishedBefore' | 'countOrphansBefore' | 'countExpiredBefore')
>;

export interface PrunerDeps {
  clock: Clock;
  events: EventBus;
  store: PruneStore;
  options: Pick<ResolvedOptions, 'retention' | 'pruneInterval'>;
  registry: Pick<HandlerRegistry, 'taskTypes' | 'isUsed'>;
}

/** Removes finished jobs past their retention. Orphans and jobs with an expired lock are only removed on request. */
export class Pruner extends PeriodicService {
  readonly name = 'prune';
  readonly #deps: PrunerDeps;

  constructor(deps: PrunerDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
  }

  async runOnce(): Promise<number> {
    await this.#pruneFinished(this.#deps.options.retention, () => this.stopping);
    return this.#deps.options.pruneInterval;
  }

  /** Removes finished jobs past their retention. With an age: everything that can be pruned and is older. */
  async prune(olderThan?: Duration): Promise<PruneCounts> {
    if (olderThan !== undefined) return this.#pruneOlderThan(parseDuration(olderThan, 'prune() olderThan'));
    return { finished: await this.#pruneFinished(this.#deps.options.retention), orphans: 0, expired: 0 };
  }

  /** Finished jobs, orphans and jobs with an expired lock, all older than `age` milliseconds. */
  async #pruneOlderThan(age: number): Promise<PruneCounts> {
    const { store } = this.#deps;
    const before = this.#before(age);
    const finished = await this.#pruneFinished(everyStatus(age));
    const known = await this.#knownTypes();
    const orphans = known === null ? 0 : await inBatches(() => store.pruneOrphans(known, before, BATCH));
    return { finished, orphans, expired: await inBatches(() => store.pruneExpired(before, BATCH)) };
  }

  /** How many jobs `prune()` would remove, counted up to `max`. */
  async count(olderThan: Duration | undefined, max: number): Promise<Record<keyof PruneCounts, Count>> {
    const { store, options } = this.#deps;
    const age = olderThan === undefined ? undefined : parseDuration(olderThan, 'countPrunable() olderThan');
    const ages = agesOf(age === undefined ? options.retention : everyStatus(age));
    const occurrences = this.#before(KEEP_OCCURRENCES_MS);
    const counted = await Promise.all(
      ages.map(([status, kept]) => store.countFinishedBefore(status, this.#before(kept), occurrences, max)),
    );
    const finished = counted.reduce((total, { count, atLeast }) => ({
      count: total.count + count,
      atLeast: total.atLeast || atLeast,
    }));
    if (age === undefined) return { finished, orphans: NOTHING, expired: NOTHING };
    const before = this.#before(age);
    const known = await this.#knownTypes();
    const orphans = known === null ? NOTHING : await store.countOrphansBefore(known, before, max);
    return { finished, orphans, expired: await store.countExpiredBefore(before, max) };
  }

  /**
   * The task types that some worker has a handler for. Null if no worker was listed within a day and this process has
   * no handlers either: then nothing counts as an orphan.
   */
  async #knownTypes(): Promise<string[] | null> {
    const { store, registry } = this.#deps;
    const listed = await store.findListedTaskTypes();
    return listed.length > 0 || registry.isUsed ? [...listed, ...registry.taskTypes] : null;
  }

  async #pruneFinished(ages: ResolvedOptions['retention'], stopped = (): boolean => false): Promise<number> {
    const { store } = this.#deps;
    let count = 0;
    for (const [status, age] of agesOf(ages)) {
      const before = this.#before(age);
      const occurrences = this.#before(KEEP_OCCURRENCES_MS);
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
