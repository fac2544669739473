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

/** A line that a handler wrote when it started or ended. */
export interface JournalEntry {
  jobId: string;
  fence: number;
  worker: string;
  kind: 'start' | 'end';
  /** Milliseconds of a clock that all processes of the machine share. */
  at: number;
}

/** What a run left behind. */
export interface Records {
  changes: readonly JobChange[];
  jobs: readonly JobDocument[];
  executions: readonly ExecutionDocument[];
  journal: readonly JournalEntry[];
  /** Ids whose dispatch was acknowledged. */
  acknowledged: Iterable<string>;
}

export interface Limits {
  maxAttempts: number;
  maxCrashes: number;
  /** Handlers at the same time per worker. */
  concurrency: number;
  /** How early a claim may seem to be, by the server's wall clock, in milliseconds. */
  clockTolerance?: number;
  /** Workers that were killed: the row of what they settled last may be missing. */
  killedWorkers?: readonly string[];
}

/**
 * Checks the invariants of the design from the records of a run, and returns every violation. The number in
 * front of each is the invariant's.
 */
export function checkInvariants(records: Records, limits: Limits): string[] {
  return [
    ...checkNothingLost(records),
    ...checkHistories(records.changes, limits),
    ...checkStarts(records, limits),
    ...checkVerdicts(records, limits),
    ...checkRest(records.jobs),
  ];
}

/** 1: every acknowledged enqueue is found at the end. */
function checkNothingLost({ acknowledged, jobs }: Records): string[] {
  const found = new Set(jobs.map(({ _id }) => _id));
  return [...acknowledged]
    .filter((id) => !found.has(id))
    .map((id) => `1: job ${id} was acknowledged and is gone`);
}

/** 2, 3, 5, 7, 9, and the token part of 4: replays every job's history against the table of transitions. */
function checkHistories(changes: readonly JobChange[], limits: Limits): string[] {
  const states = new Map<string, JobDocument>();
  const tokens = new Map<string, Set<string>>();
  const faults: string[] = [];
  for (const change of changes) {
    const { jobId, kind, fields } = change;
    const before = states.get(jobId);
    if (kind === 'delete') states.delete(jobId);
    else if (kind === 'insert') states.set(jobId, fields as JobDocument);
    else if (before !== undefined) {
      const after = { ...before, ...fields };
      states.set(jobId, after);
      faults.push(...checkChange(before, after, change, limits));
      faults.push(...checkToken(before, after, tokens));
    }
  }
  return faults;
}

function checkChange(
  before: JobDocument,
  after: JobDocument,
  { at, fields }: JobChange,
  limits: Limits,
): string[] {
  const faults: string[] = [];
  const rise = after.fence - before.fence;
  const arrow = `job ${after._id}: ${before.status} → ${after.status}, fence ${before.fence} → ${after.fence}`;
  if (fields.status !== undefined || rise !== 0) {
    const names = explainChange(before.status, after.status, rise);
    if (names.length === 0) faults.push(`2/3: ${arrow} is no legal transition`);
    faults.push(...checkSettled(before, after, names));
    if (names.includes('claim') || names.includes('buffer')) {
      const early = before.nextRunAt.getTime() - at.getTime();
      if (early > (limits.clockTolerance ?? 50)) faults.push(`9: ${arrow} ${early} ms before it was due`);
    }
  }
  if (after.attempts > limits.maxAttempts) faults.push(`7: ${arrow} with ${after.attempts} attempts`);
  if (after.crashes > limits.maxCrashes) faults.push(`7: ${arrow} with ${after.crashes} crashes`);
  return faults;
}

/** 5: what ends an attempt must have been written under the token that held the lock. */
function checkSettled(before: JobDocument, after: JobDocument, names: readonly TransitionName[]): string[] {
  const bySettling: readonly TransitionName[] = ['complete', 'fail', 'retryLater', 'snooze'];
  if (!names.some((name) => bySettling.includes(name)) || after.settledToken === before.lockToken) return [];
  return [
    `5: job ${after._id} was settled at fence ${after.fence} by ${String(after.settledBy)} under a token that did not hold its lock`,
  ];
}

/** 4: each (job, fence) has one lock token, and a token is never used again for another fence of the job. */
function checkToken(before: JobDocument, after: JobDocument, tokens: Map<string, Set<string>>): string[] {
  if (after.lockToken === before.lockToken || after.lockToken === null) return [];
  const used = tokens.get(after._id) ?? new Set();
  tokens.set(after._id, used);
  const faults: string[] = [];
  if (used.has(after.lockToken)) faults.push(`4: job ${after._id} got a lock token for the second time`);
  if (after.fence === before.fence)
    faults.push(`4: job ${after._id} changed its lock token within fence ${after.fence}`);
  used.add(after.lockToken);
  return faults;
}

/** 4 and 10: at most one start per (job, fence), by its owner; never more handlers at once than slots. */
function checkStarts({ journal, changes }: Records, { concurrency }: Limits): string[] {
  const faults: string[] = [];
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
    if (count > concurrency) faults.push(`10: worker ${worker} ran ${count} handlers at once`);
    if (kind === 'end') continue;
    if (starts.has(key)) faults.push(`4: job ${jobId} was started twice under fence ${fence}`);
    if (owners.get(key) !== worker)
      faults.push(
        `4: job ${jobId} was started under fence ${fence} by ${worker}, its owner was ${String(owners.get(key))}`,
      );
    starts.add(key);
  }
  return faults;
}

/** 6: one terminal verdict per finished run, and the execution log agrees with it. */
function checkVerdicts({ jobs, executions, changes }: Records, { killedWorkers = [] }: Limits): string[] {
  const rows = new Map(executions.map((row) => [row._id, row]));
  const faults: string[] = [];
  for (const job of jobs.filter(({ status }) => isFinished(status))) {
    const row = rows.get(`${job._id}:${job.fence}`);
    const crash = rows.get(`${job._id}:${job.fence - 1}`);
    const bySweep = job.status === 'FAILED' && crash?.outcome === 'crashed';
    const excused = job.settledBy !== null && killedWorkers.includes(job.settledBy);
    if (row !== undefined) {
      const verdict = row.outcome === 'skipped' ? 'CANCELLED' : row.outcome.toUpperCase();
      if (verdict !== job.status)
        faults.push(`6: job ${job._id} is ${job.status}, its last row says ${row.outcome}`);
      if (row.lockToken !== job.settledToken)
        faults.push(`6: job ${job._id} was settled under another token than its last row`);
    } else if (job.status !== 'CANCELLED' && !bySweep && !excused)
      faults.push(`6: job ${job._id} is ${job.status} without a row for fence ${job.fence}`);
  }
  const retries = new Map<string, number>();
  for (const { jobId, fields } of changes)
    if (fields.status === 'SCHEDULED' && fields.finishedAt === null && fields.attempts === 0)
      retries.set(jobId, (retries.get(jobId) ?? 0) + 1);
  const verdicts = new Map<string, number>();
  for (const { jobId, outcome } of executions) {
    if (outcome === 'completed' || outcome === 'failed' || outcome === 'cancelled')
      verdicts.set(jobId, (verdicts.get(jobId) ?? 0) + 1);
  }
  for (const [jobId, count] of verdicts) {
    if (count > 1 + (retries.get(jobId) ?? 0)) faults.push(`6: job ${jobId} has ${count} terminal verdicts`);
  }
  return faults;
}

/** 12: at rest, nothing is locked. */
function checkRest(jobs: readonly JobDocument[]): string[] {
  return jobs
    .filter(({ lockToken, status }) => lockToken !== null || status === 'QUEUED' || status === 'RUNNING')
    .map((job) => `12: job ${job._id} is ${job.status} and locked by ${String(job.lockedBy)}`);
}
