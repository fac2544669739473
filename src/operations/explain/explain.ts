import type { ResolvedOptions } from '../../config/options.js';
import type { Clock } from '../../domain/clock.js';
import { assertJobId } from '../../domain/identifiers.js';
import { readInstant } from '../../domain/instant.js';
import { isFinished, isCrashSuspect } from '../../domain/job/job.js';
import { type JobState, jobState } from '../../domain/job/state.js';
import { scheduleIdOf, type SkipDocument } from '../../domain/schedule/schedule.js';
import { findMalformation } from '../../schedules/stored/stored-schedule-check.js';
import type { RunState } from '../../store/jobs/find.js';
import type { Store } from '../../store/store.js';
import { listWorkers, MAX_WORKERS } from '../lists.js';
import { type Facts, type ExplainCheck, formatMoment } from './check.js';
import {
  due,
  finished,
  held,
  invalidJob,
  lockExpired,
  prefetched,
  running,
  singleInstance,
  suspect,
} from './job-checks.js';
import {
  invalidSchedule,
  noJobYet,
  noOccurrence,
  runningElsewhere,
  schedulePaused,
  skipped,
} from './occurrence-checks.js';
import { alive, busy, draining, handler, queue } from './worker-checks.js';

/** Why a job does not run, and when it will. */
export interface Explanation {
  jobId: string;
  /** Null for an occurrence that has no job yet. */
  state: JobState | null;
  sentence: string;
  /** The first check that keeps it from running; null if none does. */
  check: string | null;
  /** When that changes, or when the job ended, if known. */
  at: Date | null;
  /** The checks that ran, in order. */
  checked: { check: string; passed: boolean; sentence: string }[];
}

interface ExplainDeps {
  store: Pick<
    Store,
    'findJob' | 'findSchedule' | 'findRunStates' | 'findSkipsAt' | 'findWorkers' | 'findLockedCrashSuspects'
  >;
  clock: Clock;
  options: Pick<ResolvedOptions, 'timezone'>;
}

/** In this order. The first check that a job does not pass is the reason why it does not run. */
export const CHECKS: readonly ExplainCheck[] = [
  finished,
  invalidJob,
  lockExpired,
  running,
  prefetched,
  invalidSchedule,
  skipped,
  noOccurrence,
  schedulePaused,
  runningElsewhere,
  noJobYet,
  held,
  singleInstance,
  due,
  alive,
  handler,
  queue,
  draining,
  busy,
  suspect,
];

/** Null if there is no such job, and no schedule that would create it. */
export async function explainJob(deps: ExplainDeps, jobId: string): Promise<Explanation | null> {
  assertJobId(jobId);
  const facts = await readFacts(deps, normalizeId(jobId, deps.options.timezone));
  return facts === null ? null : explain(facts);
}

/** Makes the checks in order and stops at a final one. Pure. */
export function explain(facts: Facts, checks: readonly ExplainCheck[] = CHECKS): Explanation {
  const { id: jobId, job, now } = facts;
  const checked: Explanation['checked'] = [];
  let reason: Pick<Explanation, 'check' | 'sentence' | 'at'> | undefined;
  for (const check of checks) {
    const blocked = check.explain(facts);
    const sentence = blocked?.sentence ?? check.passed;
    checked.push({ check: check.name, passed: blocked === undefined, sentence });
    if (blocked !== undefined) reason ??= { check: check.name, sentence, at: blocked.at };
    if (blocked?.isFinal === true) break;
  }
  const since = job === null ? '' : ` since ${formatMoment(job.nextRunAt, now)}`;
  const unblocked = `Due${since}. Nothing keeps it from running: a worker claims it with its next poll.`;
  return {
    jobId,
    state: job === null ? null : jobState(job, now),
    ...(reason ?? { check: null, sentence: unblocked, at: null }),
    checked,
  };
}

async function readFacts({ store, clock }: ExplainDeps, id: string): Promise<Facts | null> {
  const job = await store.findJob(id);
  const workers = (await listWorkers(store, clock)).filter(({ isLive }) => isLive);
  const suspects =
    job !== null && isCrashSuspect(job) ? await store.findLockedCrashSuspects(MAX_WORKERS) : [];
  const jobFacts = { id, job, workers, suspects, now: clock.now() };
  const none = {
    ...{ occurrence: null, schedule: null, scheduleError: null },
    ...{ active: null, waitsFor: null, skip: null },
  };
  if (job !== null) return { ...jobFacts, ...none, waitsFor: await findBlockingRun(store, job.waitingFor) };

  const scheduleId = scheduleIdOf(id);
  const schedule = scheduleId === undefined ? null : await store.findSchedule(scheduleId);
  if (scheduleId === undefined || schedule === null) return null;
  const occurrence = id[scheduleId.length] === '@' ? parseDate(id.slice(scheduleId.length + 1)) : null;
  const scheduleError = findMalformation(schedule);
  if (scheduleError !== undefined) return { ...jobFacts, ...none, occurrence, scheduleError };
  // A triggered run without a job exists only as an entry of the schedule's pending runs.
  if (occurrence === null && !schedule.pending.some((entry) => entry.id === id)) return null;
  const runs = schedule.active === null ? null : await store.findRunStates([schedule.active]);
  const active = [...(runs?.values() ?? [])].find(({ status }) => !isFinished(status)) ?? null;
  const skips = occurrence === null ? [] : await store.findSkipsAt(scheduleId, occurrence);
  const skip = skips.find((record) => covers(record, occurrence)) ?? null;
  return { ...jobFacts, ...none, occurrence, schedule, active, skip };
}

/** The run of a single-instance schedule that a job waits for. */
async function findBlockingRun(
  store: Pick<Store, 'findSchedule' | 'findRunStates'>,
  scheduleId: string | undefined,
): Promise<RunState | null> {
  const schedule = scheduleId === undefined ? null : await store.findSchedule(scheduleId);
  if (schedule?.active == null) return null;
  return (await store.findRunStates([schedule.active])).get(schedule.active) ?? null;
}

/** People may write the time of an occurrence in any format; job ids contain it in ISO format. */
function normalizeId(id: string, timezone: string): string {
  const [, schedule, text] = /^([^@+=]+)@(.+)$/.exec(id) ?? [];
  const date = text === undefined ? undefined : readInstant(text, timezone);
  return schedule === undefined || date === undefined ? id : `${schedule}@${date.toISOString()}`;
}

function covers({ at, until }: SkipDocument, occurrence: Date | null): boolean {
  return occurrence !== null && at <= occurrence && occurrence < until;
}

function parseDate(text: string): Date | null {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) || date.toISOString() !== text ? null : date;
}
