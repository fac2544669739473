import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { type Duration, parseDuration } from '../domain/duration.js';
import type { FinishedStatus } from '../domain/job/job.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import type { Count } from '../store/jobs/counts.js';
import { KEEP_OCCURRENCES_MS } from '../store/jobs/delete.js';
import type { Prunable } from '../store/jobs/prune.js';
import type { Store } from '../store/store.js';

const BATCH = 5000;

/** Occurrences are kept longer than other jobs, and an outcome may be stored late. */
const CHECK_AGAIN_MS = 2 * KEEP_OCCURRENCES_MS;
/** Old jobs may appear later, for example from a backup. */
const FULL_CHECK_MS = 86_400_000;

/** How many jobs `prune()` removed. */
export interface PruneCounts {
  /** Finished jobs past their retention. */
  finished: number;
  /** Due jobs of task types that no worker has a handler for. */
  orphans: number;
  /** Jobs whose lock expired and that no worker has recovered. */
  expired: number;
}

interface PrunerDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'prune' | 'countPrunable' | 'findListedTaskTypes'>;
  options: Pick<ResolvedOptions, 'retention' | 'pruneInterval'>;
  registry: Pick<HandlerRegistry, 'taskTypes' | 'isUsed'>;
}

/** Deletes finished jobs past their retention. Orphans and jobs with an expired lock are deleted only on request. */
export class Pruner extends PeriodicService {
  readonly name = 'prune';
  readonly #deps: PrunerDeps;
  /** Older jobs have their own retention. Without this, every round would read all of them again. */
  #checkedUntil: Partial<Record<FinishedStatus, Date>> = {};
  #nextFullCheck = -Infinity;

  constructor(deps: PrunerDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
  }

  async runOnce(): Promise<number> {
    if (this.clock.monotonic() >= this.#nextFullCheck) {
      this.#checkedUntil = {};
      this.#nextFullCheck = this.clock.monotonic() + FULL_CHECK_MS;
    }
    const prunables = this.#finished(undefined, this.#checkedUntil);
    await this.#delete(prunables, () => {
      this.restartTimeLimit();
      return this.stopping;
    });
    if (!this.stopping) {
      for (const one of prunables)
        if (one.kind === 'finished')
          this.#checkedUntil[one.status] = new Date(one.before.getTime() - CHECK_AGAIN_MS);
    }
    return this.#deps.options.pruneInterval;
  }

  /** Deletes finished jobs past their retention. With an age: everything prunable that is older. */
  async prune(olderThan?: Duration): Promise<PruneCounts> {
    return this.#forEachKind(olderThan, 'prune() olderThan', (prunables) => this.#delete(prunables));
  }

  /** How many jobs `prune()` would delete, each kind and status counted up to `max`. */
  async count(olderThan: Duration | undefined, max: number): Promise<Record<keyof PruneCounts, Count>> {
    const where = 'countPrunable() olderThan';
    return this.#forEachKind(olderThan, where, (prunables) => this.#count(prunables, max));
  }

  async #forEachKind<T>(
    olderThan: Duration | undefined,
    where: string,
    apply: (prunables: readonly Prunable[]) => Promise<T>,
  ): Promise<Record<keyof PruneCounts, T>> {
    const age = olderThan === undefined ? undefined : parseDuration(olderThan, where);
    return {
      finished: await apply(this.#finished(age)),
      orphans: await apply(age === undefined ? [] : await this.#orphans(age)),
      expired: await apply(age === undefined ? [] : [{ kind: 'expired', before: this.#before(age) }]),
    };
  }

  /** With an age, also jobs with their own retention. */
  #finished(age?: number, from: Partial<Record<FinishedStatus, Date>> = {}): Prunable[] {
    const { completed, failed, cancelled } = this.#deps.options.retention;
    const occurrencesBefore = this.#before(KEEP_OCCURRENCES_MS);
    const ofStatus = (status: FinishedStatus, retention: number): Prunable => ({
      ...{ kind: 'finished', status, before: this.#before(age ?? retention), occurrencesBefore },
      ...{ any: age !== undefined, ...(from[status] !== undefined && { from: from[status] }) },
    });
    return [
      ofStatus('COMPLETED', completed),
      ofStatus('FAILED', failed),
      ofStatus('CANCELLED', cancelled),
      { kind: 'kept', before: this.clock.now(), occurrencesBefore },
    ];
  }

  /** None if no worker was listed within a day and this process has no handlers: every task type would be unknown. */
  async #orphans(age: number): Promise<Prunable[]> {
    const { store, registry } = this.#deps;
    const listed = await store.findListedTaskTypes();
    if (listed.length === 0 && !registry.isUsed) return [];
    return [{ kind: 'orphans', knownTypes: [...listed, ...registry.taskTypes], before: this.#before(age) }];
  }

  async #delete(prunables: readonly Prunable[], isStopped = (): boolean => false): Promise<number> {
    let total = 0;
    for (const prunable of prunables) {
      for (let deleted = BATCH; deleted > 0 && !isStopped(); total += deleted) {
        deleted = await this.#deps.store.prune(prunable, BATCH);
      }
    }
    return total;
  }

  async #count(prunables: readonly Prunable[], max: number): Promise<Count> {
    const counts = await Promise.all(prunables.map((one) => this.#deps.store.countPrunable(one, max)));
    return {
      count: counts.reduce((total, { count }) => total + count, 0),
      atLeast: counts.some(({ atLeast }) => atLeast),
    };
  }

  #before(age: number): Date {
    return new Date(this.clock.now().getTime() - age);
  }
}
