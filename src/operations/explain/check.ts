import type { JobDocument } from '../../domain/job/job.js';
import type { ScheduleDocument, SkipDocument } from '../../domain/schedule/schedule.js';
import { truncateUtf8 } from '../../domain/text.js';
import type { LockedCrashSuspect, RunState } from '../../store/jobs/find.js';
import type { WorkerView } from '../lists.js';

/** The input of the checks. */
export interface Facts {
  id: string;
  now: Date;
  /** Null for an occurrence or a triggered run that has no job yet. */
  job: JobDocument | null;
  /** The time of the occurrence if the id contains one. */
  occurrence: Date | null;
  /** Read only if there is no job; null if the schedule is malformed. */
  schedule: ScheduleDocument | null;
  /** Why the schedule is malformed. */
  scheduleError: string | null;
  /** The current run of the schedule, unless it is finished. */
  active: RunState | null;
  /** The job waits for this run of its single-instance schedule. */
  waitsFor: RunState | null;
  /** The recorded skip that includes the occurrence. */
  skip: SkipDocument | null;
  /** Live workers. */
  workers: readonly WorkerView[];
  /** Crash suspects that are locked by a worker; read only if this job is a suspect. */
  suspects: readonly LockedCrashSuspect[];
}

/** Why a job does not pass a check. */
export interface Blocked {
  sentence: string;
  /** When that changes, or changed, if known. */
  at: Date | null;
  isFinal?: true;
}

export function blocked(sentence: string, at: Date | null = null): Blocked {
  return { sentence, at };
}

/** Like `blocked`, and the checks after this one do not matter. */
export function final(sentence: string, at: Date | null = null): Blocked {
  return { sentence, at, isFinal: true };
}

/** One reason why a job may not run. Pure: it only reads the facts. `CHECKS` in explain.ts has the order. */
export interface ExplainCheck {
  readonly name: string;
  /** The sentence for a job that passes. */
  readonly passed: string;
  explain(facts: Facts): Blocked | undefined;
}

const MAX_REASON_BYTES = 200;

const UNITS: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

/** `2026-01-01T00:00:00.000Z (in 5 min)`. */
export function formatMoment(at: Date, now: Date): string {
  const ms = at.getTime() - now.getTime();
  return `${at.toISOString()} (${ms > 0 ? `in ${formatDuration(ms)}` : `${formatDuration(-ms)} ago`})`;
}

/** Rounded, in the largest unit that fits. */
export function formatDuration(ms: number): string {
  const [unit, size] = UNITS.find(([, length]) => ms >= length) ?? ['ms', 1];
  return `${Math.round(ms / size)} ${unit}`;
}

/** `: the reason`, or nothing. */
export function formatReason(reason: string | null | undefined): string {
  return reason == null || reason === '' ? '' : `: ${truncateUtf8(reason, MAX_REASON_BYTES)}`;
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
