import { isCrashSuspect } from '../domain/job/job.js';
import { Mutex } from '../runtime/waiting.js';
import type { InFlightJob } from './in-flight-jobs.js';
import type { ClaimedJob, JobPicker } from './job-picker.js';
import type { JobRunner } from './job-runner.js';
import type { UncertainClaims } from './uncertain-claims.js';

/** How many jobs to claim: `slots` of them start at once, the others are prefetched. */
export interface Room {
  readonly slots: number;
  readonly prefetch: number;
}

export interface Claim {
  /** What was asked for. Nothing was asked for without room, or after close(). */
  readonly wanted: number;
  readonly claimed: readonly ClaimedJob[];
  /** The claimed jobs that run here. */
  readonly accepted: readonly InFlightJob[];
  /** Crash suspects were left out, because one of them runs here already. */
  readonly withoutCrashSuspects: boolean;
  /** Due jobs may have been left out: crash suspects, or ids that are still in flight here. */
  readonly mayHaveLeftJobs: boolean;
  /** When the reply arrived, before the claimed jobs started. */
  readonly startedBefore: number;
  readonly freeSlotsBefore: number;
}

const NOTHING = { wanted: 0, claimed: [], withoutCrashSuspects: false, mayHaveLeftJobs: false };

/**
 * Claims jobs and hands them to the runner. One claim at a time in this process: each counts the slots that the one
 * before it has left.
 */
export class Claimer {
  readonly #picker: Pick<JobPicker, 'pick' | 'isContended'>;
  readonly #runner: Pick<JobRunner, 'accept' | 'started' | 'freeSlots' | 'hasCrashSuspect' | 'excludedIds'>;
  readonly #uncertainClaims: Pick<UncertainClaims, 'release'>;
  readonly #mutex = new Mutex();
  #isClosed = false;

  constructor(
    picker: Pick<JobPicker, 'pick' | 'isContended'>,
    runner: Pick<JobRunner, 'accept' | 'started' | 'freeSlots' | 'hasCrashSuspect' | 'excludedIds'>,
    uncertainClaims: Pick<UncertainClaims, 'release'>,
  ) {
    this.#picker = picker;
    this.#runner = runner;
    this.#uncertainClaims = uncertainClaims;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The last claim lost jobs to other workers, so a short result does not mean that nothing is left. */
  get isContended(): boolean {
    return this.#picker.isContended;
  }

  /** `alsoExclude`: ids to leave out, besides those that are in flight here. */
  claim(measureRoom: () => Room, alsoExclude: () => readonly string[] = () => []): Promise<Claim> {
    return this.#mutex.run(async () => {
      const room = measureRoom();
      const wanted = room.slots + room.prefetch;
      // close() may have been called while this claim waited for the mutex.
      if (this.#isClosed || wanted === 0) return this.#accept(NOTHING);
      const withoutCrashSuspects = this.#runner.hasCrashSuspect;
      const exclude = [...this.#runner.excludedIds, ...alsoExclude()];
      const claimed = await this.#picker.pick({ ...room, withoutCrashSuspects, exclude });
      if (this.#isClosed) {
        await this.#uncertainClaims.release(claimed);
        return this.#accept(NOTHING);
      }
      const mayHaveLeftJobs =
        room.slots === 0 ||
        withoutCrashSuspects ||
        exclude.length > 0 ||
        claimed.some(({ job }) => isCrashSuspect(job));
      return this.#accept({ wanted, claimed, withoutCrashSuspects, mayHaveLeftJobs });
    });
  }

  /** Starts no more claims, and releases what a claim in progress returns. */
  close(): void {
    this.#isClosed = true;
  }

  whenIdle(): Promise<void> {
    return this.#mutex.whenIdle();
  }

  #accept(reply: Omit<Claim, 'accepted' | 'startedBefore' | 'freeSlotsBefore'>): Claim {
    const { started: startedBefore, freeSlots: freeSlotsBefore } = this.#runner;
    return { ...reply, startedBefore, freeSlotsBefore, accepted: this.#runner.accept(reply.claimed) };
  }
}
