import { isCrashSuspect } from '../domain/job/job.js';
import { Mutex } from '../runtime/waiting.js';
import type { InFlightJob, InFlightJobs } from './in-flight-jobs.js';
import type { ClaimedJob, JobPicker, PickRequest } from './job-picker.js';
import type { JobRunner } from './job-runner.js';
import type { SingleInstances } from './single-instances.js';
import type { UncertainClaims } from './uncertain-claims.js';

/**
 * A claim that takes longer hangs: the next one does not wait for it. If it does end, its jobs start only in free slots,
 * and those whose lock has expired are released.
 */
const MAX_CLAIM_MS = 60_000;

/** How many jobs to claim: `slots` of them start at once, the others are prefetched. */
export type Room = Pick<PickRequest, 'slots' | 'prefetch'>;

export interface Claim {
  /** How many jobs were requested; 0 without room and after close(). */
  readonly wanted: number;
  readonly claimed: readonly ClaimedJob[];
  /** The claimed jobs that the runner accepted. */
  readonly accepted: readonly InFlightJob[];
  /** Due jobs may have been left out that can be claimed later: crash suspects, because this process is running one, or jobs of a queue whose slots are taken, or jobs that wait for another run of their single-instance schedule. */
  readonly leftJobsOut: boolean;
  /** Due jobs may have been excluded: crash suspects, or ids that are still in flight here. */
  readonly mayHaveExcludedJobs: boolean;
  /** Starts and free slots when the reply arrived, before the claimed jobs started. */
  readonly startedBefore: number;
  readonly freeSlotsBefore: number;
}

export interface ClaimerDeps {
  picker: Pick<JobPicker, 'pick' | 'isContended'>;
  runner: Pick<JobRunner, 'accept' | 'freeSlots'>;
  inFlight: Pick<InFlightJobs, 'started' | 'hasCrashSuspect' | 'excludedIds' | 'queueRoom'>;
  uncertainClaims: Pick<UncertainClaims, 'release'>;
  singleInstances: Pick<SingleInstances, 'select' | 'admit' | 'hasWaitingJobs'>;
}

/** Claims jobs and hands them to the runner, one claim at a time: each counts the slots that the previous one left. */
export class Claimer {
  readonly #deps: ClaimerDeps;
  readonly #mutex = new Mutex(MAX_CLAIM_MS);
  #isClosed = false;
  #isPaused = false;

  constructor(deps: ClaimerDeps) {
    this.#deps = deps;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Recent claims lost jobs to other workers, so a short result does not mean that no due jobs are left. */
  get isContended(): boolean {
    return this.#deps.picker.isContended;
  }

  /** `alsoExclude`: ids to exclude in addition to those of the jobs in flight. */
  claim(measureRoom: () => Room, alsoExclude: () => readonly string[] = () => []): Promise<Claim> {
    const { picker, runner, inFlight, uncertainClaims, singleInstances } = this.#deps;
    return this.#mutex.run(async () => {
      const room = measureRoom();
      const wanted = room.slots + room.prefetch;
      // close() or pause() may have been called while this claim waited for the mutex.
      if (this.#mayNotClaim || wanted === 0) return this.#emptyClaim();
      const withoutCrashSuspects = inFlight.hasCrashSuspect;
      const exclude = [...inFlight.excludedIds, ...alsoExclude()];
      const { queueRoom } = inFlight;
      const claimed = await picker.pick({
        ...{ ...room, withoutCrashSuspects, exclude },
        ...(queueRoom !== undefined && { queueRoom }),
      });
      if (this.#mayNotClaim) {
        await uncertainClaims.release(claimed);
        return this.#emptyClaim();
      }
      const before = this.#slotsBefore();
      const limited = singleInstances.select(claimed);
      const accepted = runner.accept(
        limited.length === 0 ? claimed : claimed.filter((one) => !limited.includes(one)),
      );
      if (limited.length > 0) accepted.push(...(await this.#admit(limited)));
      const mayHaveExcludedJobs =
        room.slots === 0 ||
        withoutCrashSuspects ||
        exclude.length > 0 ||
        claimed.some(({ job }) => isCrashSuspect(job));
      const leftJobsOut =
        withoutCrashSuspects ||
        singleInstances.hasWaitingJobs ||
        (queueRoom !== undefined && hasFullQueue(queueRoom, claimed));
      return { wanted, claimed, accepted, leftJobsOut, mayHaveExcludedJobs, ...before };
    });
  }

  /** Starts no more claims; jobs from a claim in progress are released. */
  close(): void {
    this.#isClosed = true;
  }

  /** Starts no claims until resume(); jobs from a claim in progress are released. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
  }

  whenIdle(): Promise<void> {
    return this.#mutex.whenIdle();
  }

  get #mayNotClaim(): boolean {
    return this.#isClosed || this.#isPaused;
  }

  /** Jobs of single-instance schedules: those that may not start now wait. */
  async #admit(limited: readonly ClaimedJob[]): Promise<InFlightJob[]> {
    const { runner, uncertainClaims, singleInstances } = this.#deps;
    const admitted = await singleInstances.admit(limited);
    if (!this.#mayNotClaim) return runner.accept(admitted);
    await uncertainClaims.release(admitted);
    return [];
  }

  #slotsBefore(): Pick<Claim, 'startedBefore' | 'freeSlotsBefore'> {
    const { runner, inFlight } = this.#deps;
    return { startedBefore: inFlight.started, freeSlotsBefore: runner.freeSlots };
  }

  #emptyClaim(): Claim {
    const nothing = { wanted: 0, claimed: [], accepted: [], leftJobsOut: false, mayHaveExcludedJobs: false };
    return { ...nothing, ...this.#slotsBefore() };
  }
}

/** A queue has no free slot after this claim, so more of its jobs may be due. */
function hasFullQueue(queueRoom: ReadonlyMap<string, number>, claimed: readonly ClaimedJob[]): boolean {
  return [...queueRoom].some(
    ([queue, room]) => claimed.filter(({ job }) => job.queue === queue).length >= room,
  );
}
