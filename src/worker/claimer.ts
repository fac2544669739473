import { isCrashSuspect } from '../domain/job/job.js';
import { Mutex } from '../runtime/waiting.js';
import type { InFlightJob, InFlightJobs } from './in-flight-jobs.js';
import type { ClaimedJob, JobPicker, PickRequest } from './job-picker.js';
import type { JobRunner } from './job-runner.js';
import type { UncertainClaims } from './uncertain-claims.js';

/** How many jobs to claim: `slots` of them start at once, the others are prefetched. */
export type Room = Pick<PickRequest, 'slots' | 'prefetch'>;

export interface Claim {
  /** How many jobs were requested; 0 without room and after close(). */
  readonly wanted: number;
  readonly claimed: readonly ClaimedJob[];
  /** The claimed jobs that the runner accepted. */
  readonly accepted: readonly InFlightJob[];
  /** Due jobs may have been left out that can be claimed later: crash suspects, because this process is running one, or jobs of a queue whose slots are taken. */
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
}

const EMPTY_CLAIM = { wanted: 0, claimed: [], leftJobsOut: false, mayHaveExcludedJobs: false };

/** Claims jobs and hands them to the runner, one claim at a time: each counts the slots that the previous one left. */
export class Claimer {
  readonly #deps: ClaimerDeps;
  readonly #mutex = new Mutex();
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
    const { picker, inFlight, uncertainClaims } = this.#deps;
    return this.#mutex.run(async () => {
      const room = measureRoom();
      const wanted = room.slots + room.prefetch;
      // close() or pause() may have been called while this claim waited for the mutex.
      if (this.#mayNotClaim || wanted === 0) return this.#accept(EMPTY_CLAIM);
      const withoutCrashSuspects = inFlight.hasCrashSuspect;
      const exclude = [...inFlight.excludedIds, ...alsoExclude()];
      const { queueRoom } = inFlight;
      const claimed = await picker.pick({
        ...{ ...room, withoutCrashSuspects, exclude },
        ...(queueRoom !== undefined && { queueRoom }),
      });
      if (this.#mayNotClaim) {
        await uncertainClaims.release(claimed);
        return this.#accept(EMPTY_CLAIM);
      }
      const mayHaveExcludedJobs =
        room.slots === 0 ||
        withoutCrashSuspects ||
        exclude.length > 0 ||
        claimed.some(({ job }) => isCrashSuspect(job));
      const leftJobsOut =
        withoutCrashSuspects || (queueRoom !== undefined && hasFullQueue(queueRoom, claimed));
      return this.#accept({ wanted, claimed, leftJobsOut, mayHaveExcludedJobs });
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

  #accept(reply: Omit<Claim, 'accepted' | 'startedBefore' | 'freeSlotsBefore'>): Claim {
    const { runner, inFlight } = this.#deps;
    const [startedBefore, freeSlotsBefore] = [inFlight.started, runner.freeSlots];
    return { ...reply, startedBefore, freeSlotsBefore, accepted: runner.accept(reply.claimed) };
  }
}

/** A queue has no free slot after this claim, so more of its jobs may be due. */
function hasFullQueue(queueRoom: ReadonlyMap<string, number>, claimed: readonly ClaimedJob[]): boolean {
  return [...queueRoom].some(
    ([queue, room]) => claimed.filter(({ job }) => job.queue === queue).length >= room,
  );
}
