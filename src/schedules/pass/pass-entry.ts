import { runsOf } from '../../domain/schedule/pending.js';
import type { PendingSkip, ScheduleDocument } from '../../domain/schedule/schedule.js';
import { isForEnvironment } from '../definition/definition-registry.js';
import type { Definition } from '../definition/definition.js';
import { findMalformation } from '../stored/stored-schedule-check.js';

/** What a pass did with one definition, or with one stored schedule. */
export interface PassEntry {
  readonly name: string;
  /** `run` and `failed`: it ran inline. `enqueued`: a worker runs it. `skipped`: see `reason`. */
  readonly result: 'run' | 'failed' | 'enqueued' | 'skipped';
  readonly reason: string | null;
  readonly jobId: string | null;
  readonly scheduledFor: Date | null;
}

export function entry(
  name: string,
  result: PassEntry['result'],
  reason: string | null,
  jobId: string | null = null,
  scheduledFor: Date | null = null,
): PassEntry {
  return { name, result, reason, jobId, scheduledFor };
}

/** The entry of a definition that is disabled or does not apply to this environment. */
export function skippedHere({ name, schedule }: Definition, environment: string): PassEntry | undefined {
  if (!schedule.enabled) return entry(name, 'skipped', 'disabled');
  if (isForEnvironment(schedule.environments, environment)) return undefined;
  const expected = schedule.environments.join(', ');
  return entry(name, 'skipped', `environment: runs in ${expected}, this is ${environment}`);
}

/** The entry of a stored schedule that has no occurrences now: it is malformed, disabled or paused. */
export function skippedInactive(schedule: ScheduleDocument): PassEntry | undefined {
  const { _id, paused, disabledReason } = schedule;
  const malformation = findMalformation(schedule);
  if (malformation !== undefined)
    return entry(_id, 'skipped', `the stored schedule is malformed: ${malformation}`);
  if (disabledReason !== null) return entry(_id, 'skipped', `disabled: ${disabledReason}`);
  if (paused !== null) return entry(_id, 'skipped', `paused: ${paused.reason ?? 'no reason given'}`);
  return undefined;
}

export function notDueEntry({ _id, nextRunAt }: ScheduleDocument): PassEntry {
  return entry(_id, 'skipped', nextRunAt === null ? 'not due' : `not due until ${nextRunAt.toISOString()}`);
}

export function waitingEntry(name: string): PassEntry {
  return entry(name, 'skipped', 'waits for the previous run to end');
}

export function nothingDueEntry(schedule: ScheduleDocument): PassEntry {
  return runsOf(schedule.pending).length > 0 ? waitingEntry(schedule._id) : notDueEntry(schedule);
}

export function existingJobEntry(name: string, jobId: string, scheduledFor: Date | null): PassEntry {
  return entry(name, 'skipped', 'its job already exists', jobId, scheduledFor);
}

/** `runningFor` in milliseconds; null if the run in the way has not started. */
export function stillRunningEntry(
  name: string,
  runningFor: number | null,
  jobId: string,
  scheduledFor: Date | null = null,
): PassEntry {
  const reason =
    runningFor === null
      ? `the previous run of '${name}' is waiting to start`
      : `single-instance job '${name}' is already running (for ${Math.max(0, Math.round(runningFor / 1000))} s)`;
  return entry(name, 'skipped', reason, jobId, scheduledFor);
}

export function skipEntry(name: string, { id, at, reason, runningFor }: PendingSkip): PassEntry {
  return reason === 'overlap'
    ? stillRunningEntry(name, runningFor, id, at)
    : entry(name, 'skipped', reason, id, at);
}
