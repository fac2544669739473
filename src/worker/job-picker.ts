import { randomUUID } from 'node:crypto';
import type { Clock } from '../domain/clock.js';
import { toError } from '../domain/errors.js';
import { isCrashSuspect, type JobDocument } from '../domain/job/job.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import { afterClaim, type DueFilter, MAX_QUEUE_TYPE_PAIRS, mergeDue } from '../store/jobs/claim.js';
import type { LockGrant } from '../store/jobs/fence.js';
import { isOutage } from '../store/mongo-errors.js';
import type { Store } from '../store/store.js';
import type { InvalidJobs } from './invalid-jobs.js';
import type { UncertainClaims } from './uncertain-claims.js';

/** In contended mode, jobs are picked from a window this many times wider than the number wanted … */
const CONTENDED_WINDOW = 8;
/** … and at most this many are claimed at once. */
const MAX_CONTENDED_BATCH = 250;
/** Rounds to stay in contended mode after losing jobs to another worker. */
const CONTENDED_ROUNDS = 16;
/** How many times one round reads due jobs if some of them are malformed. */
const MAX_FINDS = 10;

interface Exclusions extends Pick<DueFilter, 'withoutCrashSuspects' | 'exclude'> {
  /** How many jobs of these queues to claim at most; undefined if no queue has such a limit. */
  queueRoom?: ReadonlyMap<string, number>;
}

export interface PickRequest extends Exclusions {
  /** Free slots: jobs for these go straight to RUNNING. */
  slots: number;
  /** Jobs to prefetch: they become QUEUED. */
  prefetch: number;
}

/** A job that this process has locked. */
export interface ClaimedJob {
  job: JobDocument;
  token: string;
  /** Milliseconds that the lock holds without renewal. */
  lease: number;
  /** Monotonic time from before the claim was sent. */
  sentAt: number;
}

export interface PickerDeps {
  store: Pick<Store, 'claimOne' | 'findDue' | 'claimBatch' | 'findClaimed'>;
  clock: Clock;
  events: EventBus;
  random: () => number;
  workerId: string;
  queues: readonly string[];
  registry: Pick<HandlerRegistry, 'taskTypes' | 'settingsFor'>;
  uncertainClaims: Pick<UncertainClaims, 'add'>;
  invalidJobs: Pick<InvalidJobs, 'removeFrom' | 'end'>;
  /** Connected to mongos. */
  usesMongos: boolean;
}

interface GroupResult {
  claimed: ClaimedJob[];
  /** Another worker claimed some of the jobs first. */
  lostSome: boolean;
  error?: Error;
}

interface Group {
  transition: 'claim' | 'buffer';
  lease: number;
  fence: number;
  jobs: JobDocument[];
}

/** Claims due jobs so that no two workers ever get the same one (invariant 4). */
export class JobPicker {
  readonly #deps: PickerDeps;
  /** Rounds left in contended mode. */
  #contendedRounds = 0;

  constructor(deps: PickerDeps) {
    this.#deps = deps;
  }

  /** Other workers recently claimed jobs that this one had found. */
  get isContended(): boolean {
    return this.#contendedRounds > 0;
  }

  /** Claims up to `slots + prefetch` due jobs, in order of (priority, due time, id). */
  async pick(request: PickRequest): Promise<ClaimedJob[]> {
    const { taskTypes } = this.#deps.registry;
    const queues = this.#openQueues(request.queueRoom);
    if (taskTypes.length === 0 || queues.length === 0) return [];
    const isSingle = request.slots === 1 && request.prefetch === 0;
    const fitsOneQuery = queues.length * taskTypes.length <= MAX_QUEUE_TYPE_PAIRS;
    // pickOne sets the lease before it knows the task type.
    const haveSameLease = new Set(taskTypes.map((taskType) => this.#leaseOf(taskType))).size === 1;
    // mongos needs a transaction over all shards for a write that does not name the id: twice as long as finding it first.
    const { usesMongos } = this.#deps;
    if (!isSingle || !fitsOneQuery || !haveSameLease || usesMongos) return this.pickMany(request);
    try {
      const job = await this.pickOne(request);
      return job === null ? [] : [job];
    } catch (error) {
      // The server rejects the claim if the first job is malformed. pickMany reads it first.
      if (isOutage(error)) throw error;
      return this.pickMany(request);
    }
  }

  /** Claims one job with one atomic `findOneAndUpdate`; `pickMany` must choose in the same order. A malformed job is ended, and the next one claimed. */
  async pickOne(request: Exclusions): Promise<ClaimedJob | null> {
    const { events, invalidJobs, uncertainClaims } = this.#deps;
    for (;;) {
      const claimed = await this.#claimOne(request);
      if (claimed?.job.invalid !== undefined) {
        const { job, token, lease } = claimed;
        try {
          await invalidJobs.end(job);
        } catch (error) {
          uncertainClaims.add({ token, ids: undefined, lease });
          throw error;
        }
        continue;
      }
      const found = claimed === null ? 0 : 1;
      events.measure('claim', { wanted: 1, found, claimed: found });
      if (claimed === null) this.#contendedRounds = 0;
      return claimed;
    }
  }

  async #claimOne(request: Exclusions): Promise<ClaimedJob | null> {
    const { store, clock, uncertainClaims } = this.#deps;
    // Before the time is read for the stored lock: if the process freezes in between, the deadline here comes first.
    const sentAt = clock.monotonic();
    const filter = this.#filter(request);
    const lease = Math.min(...filter.taskTypes.map((taskType) => this.#leaseOf(taskType)));
    const grant = this.#grant(filter.now, lease);
    try {
      const job = await store.claimOne(filter, grant);
      return job === null ? null : { job, token: grant.token, lease, sentAt };
    } catch (error) {
      uncertainClaims.add({ token: grant.token, ids: undefined, lease });
      throw error;
    }
  }

  /** Two round trips for any number of jobs: find the first due ones, then lock those that have not changed since. */
  async pickMany(request: PickRequest): Promise<ClaimedJob[]> {
    const { clock, events } = this.#deps;
    const sentAt = clock.monotonic();
    // A crash suspect needs a free slot. Without one, suspects at the head would only take the place of other jobs.
    const withoutCrashSuspects = request.withoutCrashSuspects || request.slots === 0;
    const filter = this.#filter({ ...request, withoutCrashSuspects });
    const room = request.slots + request.prefetch;
    const wanted = this.isContended ? Math.min(room, MAX_CONTENDED_BATCH) : room;
    const due = await this.#findValid(filter, wanted, request.queueRoom);
    const groups = this.#group(this.#choose(due, request), request.slots);
    const results = await Promise.all(groups.map((group) => this.#claimGroup(group, filter.now, sentAt)));
    if (results.some(({ lostSome }) => lostSome)) this.#contendedRounds = CONTENDED_ROUNDS;
    else this.#contendedRounds = due.length === 0 ? 0 : Math.max(0, this.#contendedRounds - 1);
    const claimed = results.flatMap((result) => result.claimed);
    const failed = results.find(({ error }) => error !== undefined);
    if (claimed.length === 0 && failed?.error !== undefined) throw failed.error;
    events.measure('claim', { wanted, found: due.length, claimed: claimed.length });
    return claimed;
  }

  /** Finds again if some jobs were invalid: they have been ended, and no longer take the place of others. */
  async #findValid(
    filter: DueFilter,
    wanted: number,
    queueRoom: ReadonlyMap<string, number> | undefined,
  ): Promise<readonly JobDocument[]> {
    for (let tries = 1; ; tries++) {
      const found = await this.#findDue(filter, wanted, queueRoom);
      const valid = await this.#deps.invalidJobs.removeFrom(found);
      if (valid.length === found.length || tries === MAX_FINDS) return valid;
    }
  }

  /**
   * A queue with room for fewer jobs than wanted has its own query, with its own limit: otherwise its backlog could fill
   * the result, and the jobs of other queues behind it would not be found.
   */
  async #findDue(
    filter: DueFilter,
    wanted: number,
    queueRoom: ReadonlyMap<string, number> | undefined,
  ): Promise<readonly JobDocument[]> {
    const find = (part: DueFilter, limit: number): Promise<JobDocument[]> =>
      this.isContended ? this.#findAwayFromHead(part, limit) : this.#deps.store.findDue(part, limit);
    const roomOf = (queue: string): number => queueRoom?.get(queue) ?? Infinity;
    const limited = filter.queues.filter((queue) => roomOf(queue) < wanted);
    if (limited.length === 0) return find(filter, wanted);
    const others = filter.queues.filter((queue) => roomOf(queue) >= wanted);
    const found = await Promise.all([
      ...(others.length === 0 ? [] : [find({ ...filter, queues: others }, wanted)]),
      ...limited.map((queue) => find({ ...filter, queues: [queue] }, roomOf(queue))),
    ]);
    return mergeDue(found, wanted);
  }

  /** Jobs from a random offset within the most urgent priority, so that workers do not compete for the same ones. */
  async #findAwayFromHead(filter: DueFilter, wanted: number): Promise<JobDocument[]> {
    const { store, random } = this.#deps;
    const [head] = await store.findDue(filter, 1);
    if (head === undefined) return [];
    const skip = Math.floor(random() * (CONTENDED_WINDOW - 1) * wanted);
    const found = await store.findDue({ ...filter, maxPriority: head.priority }, wanted, skip);
    return found.length > 0 ? found : store.findDue(filter, wanted);
  }

  /** Keeps the order. At most one crash suspect, which comes first, and only if it can start at once. */
  #choose(due: readonly JobDocument[], { slots, prefetch }: PickRequest): JobDocument[] {
    const suspects = slots > 0 ? due.filter(isCrashSuspect).slice(0, 1) : [];
    const others = due.filter((job) => !isCrashSuspect(job));
    return [...suspects, ...others].slice(0, slots + prefetch);
  }

  /** Groups jobs that one statement can claim: same fence, same transition, same lease. */
  #group(jobs: readonly JobDocument[], slots: number): Group[] {
    const groups: Group[] = [];
    for (const [index, job] of jobs.entries()) {
      const transition = index < slots ? 'claim' : 'buffer';
      const lease = this.#leaseOf(job.taskType);
      const group = groups.find(
        (one) => one.transition === transition && one.lease === lease && one.fence === job.fence,
      );
      if (group === undefined) groups.push({ transition, lease, fence: job.fence, jobs: [job] });
      else group.jobs.push(job);
    }
    return groups;
  }

  async #claimGroup(group: Group, now: Date, sentAt: number): Promise<GroupResult> {
    const { store, uncertainClaims, invalidJobs } = this.#deps;
    const { transition, lease, jobs } = group;
    const grant = this.#grant(now, lease);
    const ids = jobs.map(({ _id }) => _id);
    try {
      const lostSome = (await store.claimBatch(transition, jobs, grant, now)) < jobs.length;
      const owned = lostSome
        ? inOrderOf(ids, await invalidJobs.removeFrom(await store.findClaimed(ids, grant.token)))
        : jobs.map((job) => afterClaim(transition, job, grant, now));
      return { claimed: owned.map((job) => ({ job, token: grant.token, lease, sentAt })), lostSome };
    } catch (error) {
      uncertainClaims.add({ token: grant.token, ids, lease });
      return { claimed: [], lostSome: false, error: toError(error) };
    }
  }

  #filter({ withoutCrashSuspects, exclude, queueRoom }: Exclusions): DueFilter {
    const { registry, clock } = this.#deps;
    const queues = this.#openQueues(queueRoom);
    return { queues, taskTypes: registry.taskTypes, now: clock.now(), withoutCrashSuspects, exclude };
  }

  /** The queues that have room. */
  #openQueues(queueRoom: ReadonlyMap<string, number> | undefined): readonly string[] {
    const { queues } = this.#deps;
    return queueRoom === undefined ? queues : queues.filter((queue) => queueRoom.get(queue) !== 0);
  }

  #grant(now: Date, lease: number): LockGrant {
    const { workerId } = this.#deps;
    return { token: randomUUID(), workerId, lockedUntil: new Date(now.getTime() + lease) };
  }

  #leaseOf(taskType: string): number {
    return this.#deps.registry.settingsFor(taskType).lease;
  }
}

/** Each job once: a job that is rescheduled during an index scan can be found twice. */
function inOrderOf(ids: readonly string[], jobs: readonly JobDocument[]): JobDocument[] {
  const byId = new Map(jobs.map((job) => [job._id, job]));
  return [...new Set(ids)].map((id) => byId.get(id)).filter((job) => job !== undefined);
}
