import type { ExecutionDocument } from '../../src/domain/job/execution.js';
import { isFinished, type JobDocument, type JobStatus } from '../../src/domain/job/job.js';
import { type Transition, type TransitionName, TRANSITIONS } from '../../src/domain/job/transitions.js';
import type { JobChange } from './job-history.js';

/** The transitions that allow this change; none means it is illegal. */
export function explainChange(from: JobStatus, to: JobStatus, fenceIncrease: number): TransitionName[] {
  const names = Object.keys(TRANSITIONS) as TransitionName[];
  return names.filter((name) => {
    const transition: Transition = TRANSITIONS[name];
    return transition.from.includes(from) && transition.to === to && transition.fence === fenceIncrease;
  });
}

/** An entry that a handler wrote when it started or ended. */
export interface JournalEntry {
  jobId: string;
  fence: number;
  worker: string;
  kind: 'start' | 'end';
  /** Milliseconds of the monotonic clock that all processes of the machine share. */
  at: number;
}

/** Everything that a run has recorded. */
export interface Records {
  changes: readonly JobChange[];
  jobs: readonly JobDocument[];
  executions: readonly ExecutionDocument[];
  journal: readonly JournalEntry[];
  /** Ids of jobs whose dispatch was acknowledged. */
  acknowledged: Iterable<string>;
}

export interface Limits {
  maxAttempts: number;
  maxCrashes: number;
  /** Slots per worker. */
  concurrency: number;
  /** How early a claim may appear by the server's wall clock, in milliseconds. */
  clockTolerance?: number;
  /** Workers that were killed: the execution of the last job that they settled may be missing. */
  killedWorkers?: readonly string[];
}

/** Checks the records of a run, and returns all violations. Each starts with the number of the invariant. */
export function checkInvariants(records: Records, limits: Limits): string[] {
  return [
    ...checkNothingLost(records),
    ...checkHistories(records.changes, limits),
    ...checkStarts(records, limits),
    ...checkOutcomes(records, limits),
    ...checkUnlocked(records.jobs),
  ];
}

/** 1: every acknowledged job exists at the end. */
function checkNothingLost({ acknowledged, jobs }: Records): string[] {
  const found = new Set(jobs.map(({ _id }) => _id));
  return [...acknowledged]
    .filter((id) => !found.has(id))
    .map((id) => `1: job ${id} was acknowledged but does not exist`);
}

/** 2, 3, 5, 7, 9 and the lock tokens of 4: replays the history of every job against the table of transitions. */
function checkHistories(changes: readonly JobChange[], limits: Limits): string[] {
  const states = new Map<string, JobDocument>();
  const tokens = new Map<string, Set<string>>();
  const violations: string[] = [];
  for (const change of changes) {
    const { jobId, kind, fields } = change;
    const before = states.get(jobId);
    if (kind === 'delete') states.delete(jobId);
    else if (kind === 'insert') states.set(jobId, fields as JobDocument);
    else if (before !== undefined) {
      const after = { ...before, ...fields };
      states.set(jobId, after);
      violations.push(...checkChange(before, after, change, limits));
      violations.push(...checkToken(before, after, tokens));
    }
  }
  return violations;
}

function checkChange(
  before: JobDocument,
  after: JobDocument,
  { at, fields }: JobChange,
  limits: Limits,
): string[] {
  const violations: string[] = [];
  const fenceIncrease = after.fence - before.fence;
  const arrow = `job ${after._id}: ${before.status} → ${after.status}, fence ${before.fence} → ${after.fence}`;
  if (fields.status !== undefined || fenceIncrease !== 0) {
    const names = explainChange(before.status, after.status, fenceIncrease);
    if (names.length === 0) violations.push(`2/3: ${arrow} is no legal transition`);
    violations.push(...checkSettled(before, after, names));
    if (names.includes('claim') || names.includes('buffer')) {
      const early = before.nextRunAt.getTime() - at.getTime();
      if (early > (limits.clockTolerance ?? 50)) violations.push(`9: ${arrow} ${early} ms before it was due`);
    }
  }
  if (after.attempts > limits.maxAttempts) violations.push(`7: ${arrow} with ${after.attempts} attempts`);
  if (after.crashes > limits.maxCrashes) violations.push(`7: ${arrow} with ${after.crashes} crashes`);
  return violations;
}

/** 5: only the owner of the lock may end an attempt. */
function checkSettled(before: JobDocument, after: JobDocument, names: readonly TransitionName[]): string[] {
  const settling: readonly TransitionName[] = ['complete', 'fail', 'retryLater', 'snooze'];
  if (!names.some((name) => settling.includes(name)) || after.settledToken === before.lockToken) return [];
  return [
    `5: job ${after._id} was settled at fence ${after.fence} by ${String(after.settledBy)} with a token that does not own the lock`,
  ];
}

/** 4: each fence of a job has one lock token, which no other fence of the job uses. */
function checkToken(before: JobDocument, after: JobDocument, tokens: Map<string, Set<string>>): string[] {
  if (after.lockToken === before.lockToken || after.lockToken === null) return [];
  const used = tokens.get(after._id) ?? new Set();
  tokens.set(after._id, used);
  const violations: string[] = [];
  if (used.has(after.lockToken)) violations.push(`4: job ${after._id} got the same lock token again`);
  if (after.fence === before.fence)
    violations.push(`4: job ${after._id} changed its lock token within fence ${after.fence}`);
  used.add(after.lockToken);
  return violations;
}

/** 4 and 10: each fence of a job starts at most once, in the worker that owns it; no worker runs more handlers than it has slots. */
function checkStarts({ journal, changes }: Records, { concurrency }: Limits): string[] {
  const violations: string[] = [];
  const owners = new Map<string, string | null>();
  for (const { jobId, fields } of changes) {
    if (fields.fence !== undefined && fields.lockedBy != null)
      owners.set(`${jobId}:${fields.fence}`, fields.lockedBy);
  }
  const starts = new Set<string>();
  const running = new Map<string, number>();
  const ordered = [...journal].sort((a, b) => a.at - b.at || (a.kind === 'end' ? -1 : 1));
  for (const { jobId, fence, worker, kind } of ordered) {
    const key = `${jobId}:${fence}`;
    const count = (running.get(worker) ?? 0) + (kind === 'start' ? 1 : -1);
    running.set(worker, count);
    if (count > concurrency) violations.push(`10: worker ${worker} ran ${count} handlers at once`);
    if (kind === 'end') continue;
    if (starts.has(key)) violations.push(`4: job ${jobId} was started twice under fence ${fence}`);
    if (owners.get(key) !== worker)
      violations.push(
        `4: job ${jobId} was started under fence ${fence} by ${worker}, its owner was ${String(owners.get(key))}`,
      );
    starts.add(key);
  }
  return violations;
}

/** 6: each run ends once, and the execution log agrees with the status. */
function checkOutcomes({ jobs, executions, changes }: Records, { killedWorkers = [] }: Limits): string[] {
  const rows = new Map(executions.map((row) => [row._id, row]));
  const violations: string[] = [];
  for (const job of jobs.filter(({ status }) => isFinished(status))) {
    const row = rows.get(`${job._id}:${job.fence}`);
    const crash = rows.get(`${job._id}:${job.fence - 1}`);
    const failedBySweeper =
      job.status === 'FAILED' && (crash?.outcome === 'crashed' || crash?.outcome === 'lost');
    const excused = job.settledBy !== null && killedWorkers.includes(job.settledBy);
    if (row !== undefined) {
      const status = row.outcome === 'skipped' ? 'CANCELLED' : row.outcome.toUpperCase();
      if (status !== job.status)
        violations.push(`6: job ${job._id} is ${job.status}, its last execution is ${row.outcome}`);
      if (row.lockToken !== job.settledToken)
        violations.push(`6: job ${job._id} was settled with another token than its last execution`);
    } else if (job.status !== 'CANCELLED' && !failedBySweeper && !excused)
      violations.push(`6: job ${job._id} is ${job.status} without an execution for fence ${job.fence}`);
  }
  const retries = new Map<string, number>();
  for (const { jobId, fields } of changes)
    if (fields.status === 'SCHEDULED' && fields.finishedAt === null && fields.attempts === 0)
      retries.set(jobId, (retries.get(jobId) ?? 0) + 1);
  const ends = new Map<string, number>();
  for (const { jobId, outcome } of executions) {
    if (outcome === 'completed' || outcome === 'failed' || outcome === 'cancelled')
      ends.set(jobId, (ends.get(jobId) ?? 0) + 1);
  }
  for (const [jobId, count] of ends) {
    if (count > 1 + (retries.get(jobId) ?? 0)) violations.push(`6: job ${jobId} ended ${count} times`);
  }
  return violations;
}

/** 12: nothing stays locked. */
function checkUnlocked(jobs: readonly JobDocument[]): string[] {
  return jobs
    .filter(({ lockToken, status }) => lockToken !== null || status === 'QUEUED' || status === 'RUNNING')
    .map((job) => `12: job ${job._id} is ${job.status} and locked by ${String(job.lockedBy)}`);
}
