import type { JobDocument } from '../../domain/job.js';
import type { ScheduleDocument, SkipDocument } from '../../domain/schedule.js';
import type { Run } from '../../store/active-runs.js';
import type { LockedSuspect } from '../../store/suspects.js';
import type { WorkerView } from '../workers.js';

/** What was read about a job before anybody judges why it does not run. */
export interface Facts {
  id: string;
  now: Date;
  /** Null: an occurrence, or a run asked for, that has no job yet. */
  job: JobDocument | null;
  /** The time of the occurrence, where the id says one. */
  occurrence: Date | null;
  /** Null: there is none in question, or it cannot be read. */
  schedule: ScheduleDocument | null;
  /** Why its schedule cannot be read. */
  scheduleFault: string | null;
  /** The current run of its schedule, unless that is finished. */
  active: Run | null;
  /** The record that its occurrence was skipped. */
  skip: SkipDocument | null;
  /** Those that live. */
  workers: readonly WorkerView[];
  /** Suspects that workers have now; read when the job is one itself. */
  suspects: readonly LockedSuspect[];
}

/** Why a job does not get past a gate. */
export interface Blocked {
  sentence: string;
  /** When that changes, or changed, as far as anybody knows. */
  at: Date | null;
  /** What comes after it does not matter. */
  isFinal?: true;
}

/**
 * One reason for which a job may not run. Pure: it judges facts. Gates are asked in the order of the list in `gates.ts`;
 * whatever else may keep a job back (limits, pauses, other jobs) is one more of these.
 */
export interface Gate {
  readonly name: string;
  /** What is true when the job gets past. */
  readonly passed: string;
  explain(facts: Facts): Blocked | undefined;
}
