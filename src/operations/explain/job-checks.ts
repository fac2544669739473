import {
  hasStarted,
  isFinished,
  isCrashSuspect,
  type JobDocument,
  runningSince,
} from '../../domain/job/job.js';
import { blocked, type ExplainCheck, final, formatMoment, formatReason, plural } from './check.js';
import { capable, hasFreeSlot } from './worker-checks.js';

export const finished: ExplainCheck = {
  name: 'finished',
  passed: 'It is not finished.',
  explain({ job, now }) {
    if (job === null || !isFinished(job.status)) return undefined;
    const at = job.finishedAt;
    const time = at === null ? '' : ` at ${formatMoment(at, now)}`;
    return final(`${describeEnd(job)}${time}${formatReason(finishedReason(job))}.`, at);
  },
};

function describeEnd(job: JobDocument): string {
  switch (job.status) {
    case 'COMPLETED':
      return 'It completed';
    case 'FAILED':
      if (job.error?.code === 'INVALID_JOB') return 'It ended without running';
      return `It failed for good after ${plural(job.attempts + job.crashes, 'attempt')}`;
    default:
      if (job.cancelKind === 'expired') return 'It expired before it started';
      return job.skipReason === null ? 'It was cancelled' : 'A filter skipped it';
  }
}

function finishedReason(job: JobDocument): string | null {
  if (job.status === 'COMPLETED') return null;
  if (job.status === 'FAILED') return job.error?.message ?? null;
  return job.skipReason ?? job.cancelRequested?.reason ?? null;
}

/** Before the next worker that finds it ends it. */
export const invalidJob: ExplainCheck = {
  name: 'invalidJob',
  passed: 'Its stored document is valid.',
  explain({ job }) {
    if (job?.invalid === undefined) return undefined;
    const ending = job.invalid.fields.includes('nextRunAt')
      ? 'No worker finds it without a due time: correct or delete it in the database.'
      : 'The next worker that reads it ends it as FAILED.';
    return final(`Its stored document is malformed, so it never runs: ${job.invalid.reason}. ${ending}`);
  },
};

export const lockExpired: ExplainCheck = {
  name: 'lockExpired',
  passed: 'It has no expired lock.',
  explain({ job, workers, now }) {
    if (job?.lockedUntil == null || job.lockedUntil >= now) return undefined;
    const cause = `Its lock expired at ${formatMoment(job.lockedUntil, now)}: worker ${job.lockedBy ?? 'unknown'} died, froze or lost its connection`;
    const next =
      workers.length > 0
        ? 'the next sweep of any live worker recovers it (every 30 s by default, see sweepInterval)'
        : 'no worker is alive to sweep: start one';
    return final(`${cause}; ${next}.`);
  },
};

export const running: ExplainCheck = {
  name: 'running',
  passed: 'It is not running.',
  explain({ job, now }) {
    if (job?.status !== 'RUNNING') return undefined;
    const since = job.startedAt ?? job.queuedAt;
    const time = since === null ? '' : ` since ${formatMoment(since, now)}`;
    const cancel =
      job.cancelRequested === null
        ? ''
        : `; its worker was asked to cancel it at ${formatMoment(job.cancelRequested.at, now)}`;
    return final(
      `It is running in worker ${job.lockedBy ?? 'unknown'}${time}, attempt ${job.attempts + 1}${progressOf(job)}${cancel}.`,
      since,
    );
  },
};

export const prefetched: ExplainCheck = {
  name: 'prefetched',
  passed: 'No worker has prefetched it.',
  explain({ job, now }) {
    if (job?.status !== 'QUEUED') return undefined;
    const since = job.queuedAt === null ? '' : ` since ${formatMoment(job.queuedAt, now)}`;
    return final(
      `Worker ${job.lockedBy ?? 'unknown'} has prefetched it${since}, and starts it when it has a free slot.`,
      job.queuedAt,
    );
  },
};

function progressOf({ progress }: JobDocument): string {
  return progress === null ? '' : `, progress ${progress.value}${formatReason(progress.note)}`;
}

export const held: ExplainCheck = {
  name: 'held',
  passed: 'It is not held.',
  explain({ job, now }) {
    if (job?.status !== 'PENDING' || job.waitingFor !== undefined) return undefined;
    const since = job.held === null ? '' : ` since ${formatMoment(job.held.at, now)}`;
    return blocked(
      `It is held${since}${formatReason(job.held?.reason)}; let it run again with: chronos jobs unhold ${job._id}.`,
    );
  },
};

export const singleInstance: ExplainCheck = {
  name: 'singleInstance',
  passed: 'It does not wait for another run of a single-instance schedule.',
  explain({ job, waitsFor, now }) {
    if (job?.status !== 'PENDING' || job.waitingFor === undefined) return undefined;
    const rule = `at most one run of '${job.waitingFor}' may be active (singleInstance)`;
    if (waitsFor === null || isFinished(waitsFor.status) || waitsFor._id === job._id)
      return blocked(
        `The run that it waited for has ended. A worker that defines '${job.waitingFor}' lets it run at its next poll: ${rule}.`,
      );
    const since = formatMoment(runningSince(waitsFor), now);
    const state = hasStarted(waitsFor) ? waitsFor.status : 'waiting to start';
    return blocked(`It waits until ${waitsFor._id} ends (${state} since ${since}): ${rule}.`);
  },
};

export const due: ExplainCheck = {
  name: 'due',
  passed: 'It is due.',
  explain({ job, now }) {
    if (job === null || job.nextRunAt <= now) return undefined;
    const time = formatMoment(job.nextRunAt, now);
    return blocked(`${delayReason(job)} ${time}.`, job.nextRunAt);
  },
};

function delayReason({ attempts, crashes, error }: JobDocument): string {
  if (error === null || attempts + crashes === 0) return 'Not due until';
  return `Retrying after attempt ${attempts + crashes} failed (${error.name}${formatReason(error.message)}) at`;
}

/** A crash suspect is never prefetched, and a process runs one suspect at a time. */
export const suspect: ExplainCheck = {
  name: 'suspect',
  passed: 'It does not have to wait for another crash suspect.',
  explain({ job, workers, suspects }) {
    if (job === null || !isCrashSuspect(job)) return undefined;
    const free = capable(workers, job).filter((worker) => hasFreeSlot(worker, job.queue));
    const others = free.map(({ id }) => suspects.find(({ lockedBy }) => lockedBy === id));
    const [first] = others;
    if (first === undefined || others.includes(undefined)) return undefined;
    const waitsFor =
      free.length === 1
        ? `the worker that could run it is running ${first._id}`
        : `all ${free.length} workers that could run it are running one (${first._id} is the first)`;
    return blocked(`${describeCrashes(job)}, and a process runs only one such job at a time: ${waitsFor}.`);
  },
};

function describeCrashes({ crashes, lostWhileQueued }: JobDocument): string {
  return crashes > 0
    ? `Its process died ${plural(crashes, 'time')} while it ran`
    : `Its worker died ${plural(lostWhileQueued, 'time')} before it started`;
}
