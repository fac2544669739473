import { randomUUID } from 'node:crypto';
import type { Clock } from '../domain/clock.js';
import { toError } from '../domain/errors.js';
import type { SchedulerEvents } from '../domain/events.js';
import { isSuspect, type JobDocument } from '../domain/job.js';
import { afterClaim, MOST_PAIRS, type DueFilter, type DueJob } from '../store/claim.js';
import type { LockGrant } from '../store/lock-fields.js';
import type { Store } from '../store/store.js';
import type { ClaimedJob, DoubtfulClaim } from './claimed-job.js';

/** After a lost round, pick from a window this many times wider than what is wanted, and want no more than so many. */
const WINDOW = 8;
const MOST_CONTENDED = 250;
/** Who met others once will meet them again: so many rounds are made like this. */
const WARY_ROUNDS = 16;

export interface PickRequest {
  /** Free slots: jobs for these go straight to RUNNING. */
  slots: number;
  /** Room in the buffer: jobs for this become QUEUED. */
  buffer: number;
  withoutSuspects: boolean;
  exclude: readonly string[];
}

export type ClaimRound = SchedulerEvents['worker:claim'];

export interface PickerParts {
  store: Pick<Store, 'claimOne' | 'findDue' | 'claimBatch' | 'findClaimed'>;
  clock: Clock;
  random: () => number;
  workerId: string;
  queues: readonly string[];
  taskTypes: () => readonly string[];
  leaseOf: (taskType: string) => number;
  /** Told of every round that asked the database and got an answer. */
  onRound: (round: ClaimRound) => void;
  /** Told of every claim whose effect is not known. */
  onDoubt: (doubt: DoubtfulClaim) => void;
}

interface Taken {
  claimed: ClaimedJob[];
  /** Somebody else got some of them. */
  short: boolean;
  error?: Error;
}

interface Group {
  transition: 'claim' | 'buffer';
  lease: number;
  fence: number;
  jobs: DueJob[];
}

/** Finds due jobs and takes them, so that no two workers ever get the same one. */
export class JobPicker {
  readonly #parts: PickerParts;
  /** How many rounds are left that keep out of the way of others. */
  #wary = 0;

  constructor(parts: PickerParts) {
    this.#parts = parts;
  }

  /** Others took some of what the last round had found: there may be more. */
  get isContended(): boolean {
    return this.#wary > 0;
  }

  /** Claims up to `slots + buffer` due jobs, in order of (priority, due time, id). */
  async pick(request: PickRequest): Promise<ClaimedJob[]> {
    const { taskTypes, queues } = this.#parts;
    const types = taskTypes();
    if (types.length === 0) return [];
    const alone = request.slots === 1 && request.buffer === 0;
    if (alone && queues.length * types.length <= MOST_PAIRS && this.#onlyLease(types) !== undefined) {
      const job = await this.pickOne(request);
      return job === null ? [] : [job];
    }
    return this.pickMany(request);
  }

  /** The reference: one atomic `findOneAndUpdate`. */
  async pickOne(request: Pick<PickRequest, 'withoutSuspects' | 'exclude'>): Promise<ClaimedJob | null> {
    const { store, clock, leaseOf } = this.#parts;
    const filter = this.#filter(request);
    const lease = this.#onlyLease(filter.taskTypes) ?? Math.min(...filter.taskTypes.map(leaseOf));
    const sentAt = clock.monotonic();
    const grant = this.#grant(filter.now, lease);
    try {
      const job = await store.claimOne(filter, grant);
      const claimed = job === null ? 0 : 1;
      if (job === null) this.#wary = 0;
      this.#parts.onRound({ wanted: 1, found: claimed, claimed });
      return job === null ? null : { job, token: grant.token, lease, sentAt };
    } catch (error) {
      this.#parts.onDoubt({ token: grant.token, ids: undefined, lease });
      throw error;
    }
  }

  /** Two round trips for any number of jobs: read the first due ones, then take those nobody changed since. */
  async pickMany(request: PickRequest): Promise<ClaimedJob[]> {
    const { store, clock } = this.#parts;
    const sentAt = clock.monotonic();
    // Without a free slot a suspect cannot be taken; those at the head must not use up what is read.
    const withoutSuspects = request.withoutSuspects || request.slots === 0;
    const filter = this.#filter({ ...request, withoutSuspects });
    const wary = this.#wary > 0;
    const wanted = wary
      ? Math.min(request.slots + request.buffer, MOST_CONTENDED)
      : request.slots + request.buffer;
    const due = wary ? await this.#findElsewhere(filter, wanted) : await store.findDue(filter, wanted);
    const groups = this.#group(this.#choose(due, request), request.slots);
    const taken = await Promise.all(groups.map((group) => this.#take(group, filter.now, sentAt)));
    if (taken.some((result) => result.short)) this.#wary = WARY_ROUNDS;
    else this.#wary = due.length === 0 ? 0 : Math.max(0, this.#wary - 1);
    const claimed = taken.flatMap((result) => result.claimed);
    const failed = taken.find((result) => result.error !== undefined);
    if (claimed.length === 0 && failed?.error !== undefined) throw failed.error;
    this.#parts.onRound({ wanted, found: due.length, claimed: claimed.length });
    return claimed;
  }

  /** Jobs from a random offset within the most urgent priority, so that workers do not fight for the head. */
  async #findElsewhere(filter: DueFilter, wanted: number): Promise<DueJob[]> {
    const { store, random } = this.#parts;
    const [head] = await store.findDue(filter, 1);
    if (head === undefined) return [];
    const skip = Math.floor(random() * (WINDOW - 1) * wanted);
    const found = await store.findDue({ ...filter, mostPriority: head.priority }, wanted, skip);
    return found.length > 0 ? found : store.findDue(filter, wanted);
  }

  /** In order; at most one suspect, and only where it can start at once. */
  #choose(due: readonly DueJob[], { slots, buffer }: PickRequest): DueJob[] {
    const wanted = slots + buffer;
    const suspect = slots > 0 ? due.find(isSuspect) : undefined;
    const others = due.filter((job) => !isSuspect(job)).slice(0, suspect === undefined ? wanted : wanted - 1);
    return suspect === undefined ? others : [suspect, ...others];
  }

  /** Jobs that one statement can take: the same fence was read, the same lock is granted. */
  #group(jobs: readonly DueJob[], slots: number): Group[] {
    const groups: Group[] = [];
    for (const [index, job] of jobs.entries()) {
      const transition = index < slots ? 'claim' : 'buffer';
      const lease = this.#parts.leaseOf(job.taskType);
      const group = groups.find(
        (one) => one.transition === transition && one.lease === lease && one.fence === job.fence,
      );
      if (group === undefined) groups.push({ transition, lease, fence: job.fence, jobs: [job] });
      else group.jobs.push(job);
    }
    return groups;
  }

  async #take(group: Group, now: Date, sentAt: number): Promise<Taken> {
    const { store, onDoubt } = this.#parts;
    const { transition, lease, jobs } = group;
    const grant = this.#grant(now, lease);
    const ids = jobs.map(({ _id }) => _id);
    try {
      const taken = await store.claimBatch(transition, jobs, grant, now);
      const short = taken < jobs.length;
      const ours = short
        ? inOrderOf(ids, await store.findClaimed(ids, grant.token))
        : jobs.map((job) => afterClaim(transition, job, grant, now));
      return { claimed: ours.map((job) => ({ job, token: grant.token, lease, sentAt })), short };
    } catch (error) {
      onDoubt({ token: grant.token, ids, lease });
      return { claimed: [], short: false, error: toError(error) };
    }
  }

  #filter({ withoutSuspects, exclude }: Pick<PickRequest, 'withoutSuspects' | 'exclude'>): DueFilter {
    const { queues, taskTypes, clock } = this.#parts;
    return { queues, taskTypes: taskTypes(), now: clock.now(), withoutSuspects, exclude };
  }

  #grant(now: Date, lease: number): LockGrant {
    return {
      token: randomUUID(),
      workerId: this.#parts.workerId,
      lockedUntil: new Date(now.getTime() + lease),
    };
  }

  /** The lease all these types share, if they do: only then is it known before the job is. */
  #onlyLease(taskTypes: readonly string[]): number | undefined {
    const leases = new Set(taskTypes.map(this.#parts.leaseOf));
    return leases.size === 1 ? [...leases][0] : undefined;
  }
}

/** Each once: a scan in the order of their times meets a job again that was moved to a later one meanwhile. */
function inOrderOf(ids: readonly string[], jobs: readonly JobDocument[]): JobDocument[] {
  const byId = new Map(jobs.map((job) => [job._id, job]));
  return [...new Set(ids)].map((id) => byId.get(id)).filter((job) => job !== undefined);
}
