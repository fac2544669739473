import type { OwedSkip, ScheduleDocument } from '../domain/schedule.js';
import { runsOf } from '../domain/owed.js';
import type { Definition } from './definition.js';
import { isMeantFor } from './definitions.js';
import { unreadable } from './readable.js';

/** What a pass did about one definition, or one stored schedule. */
export interface PassEntry {
  readonly name: string;
  /** `run` and `failed` in place, `enqueued` for workers, `skipped` for the reason given. */
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

/** Why a definition is not even looked at here, if it is not. */
export function refused({ name, schedule }: Definition, environment: string): PassEntry | undefined {
  if (!schedule.enabled) return entry(name, 'skipped', 'disabled');
  if (isMeantFor(schedule.environments, environment)) return undefined;
  const wanted = schedule.environments.join(', ');
  return entry(name, 'skipped', `environment: runs in ${wanted}, this is ${environment}`);
}

/** Why nothing can be done with a stored schedule, if nothing can. */
export function unfit(schedule: ScheduleDocument): PassEntry | undefined {
  const fault = unreadable(schedule);
  return fault === undefined ? undefined : entry(schedule._id, 'skipped', `the stored schedule: ${fault}`);
}

/** Why a schedule has no occurrences now, if it has none. */
export function inactive({ _id, paused, disabledReason }: ScheduleDocument): PassEntry | undefined {
  if (disabledReason !== null) return entry(_id, 'skipped', `disabled: ${disabledReason}`);
  if (paused !== null) return entry(_id, 'skipped', `paused: ${paused.reason ?? 'no reason given'}`);
  return undefined;
}

export function notDue({ _id, nextRunAt }: ScheduleDocument): PassEntry {
  return entry(_id, 'skipped', nextRunAt === null ? 'not due' : `not due until ${nextRunAt.toISOString()}`);
}

export function waits(name: string): PassEntry {
  return entry(name, 'skipped', 'waits for the run before it to end');
}

export function waitingOrNotDue(schedule: ScheduleDocument): PassEntry {
  return runsOf(schedule.owed).length > 0 ? waits(schedule._id) : notDue(schedule);
}

export function jobExists(name: string, jobId: string, scheduledFor: Date | null): PassEntry {
  return entry(name, 'skipped', 'its job exists already', jobId, scheduledFor);
}

/** `runningFor` in milliseconds. */
export function isRunning(
  name: string,
  runningFor: number,
  jobId: string,
  scheduledFor: Date | null = null,
): PassEntry {
  const seconds = Math.max(0, Math.round(runningFor / 1000));
  const reason = `single-instance job '${name}' is already running: still running for ${seconds} s`;
  return entry(name, 'skipped', reason, jobId, scheduledFor);
}

export function skipEntry(name: string, { id, at, reason, runningFor }: OwedSkip): PassEntry {
  return reason === 'overlap'
    ? isRunning(name, runningFor ?? 0, id, at)
    : entry(name, 'skipped', reason, id, at);
}
