import type { JobDocument } from '../../domain/job.js';
import type { Gate } from './gate.js';
import { because, when } from './phrases.js';

/** Locked, and nobody renews the lock. */
export const lockExpired: Gate = {
  name: 'lockExpired',
  passed: 'No expired lock is on it.',
  explain({ job, workers, now }) {
    if (job?.lockedUntil == null || job.lockedUntil >= now) return undefined;
    const who = `Its lock expired at ${when(job.lockedUntil, now)}: worker ${job.lockedBy ?? 'unknown'} died, froze or was cut off`;
    const what =
      workers.length > 0
        ? 'the next sweep of any live worker puts it back, within half a minute unless sweepInterval says otherwise'
        : 'no live worker is there to sweep: start one';
    return { sentence: `${who}; ${what}.`, at: null, isFinal: true };
  },
};

export const running: Gate = {
  name: 'running',
  passed: 'It does not run.',
  explain({ job, now }) {
    if (job?.status !== 'RUNNING') return undefined;
    const since = job.startedAt ?? job.queuedAt;
    const time = since === null ? '' : ` since ${when(since, now)}`;
    const cancel =
      job.cancelRequested === null
        ? ''
        : `; its worker was asked to cancel it at ${when(job.cancelRequested.at, now)}`;
    const sentence = `It runs in worker ${job.lockedBy ?? 'unknown'}${time}, attempt ${job.attempts + 1}${progressOf(job)}${cancel}.`;
    return { sentence, at: since, isFinal: true };
  },
};

export const buffered: Gate = {
  name: 'buffered',
  passed: 'It is not in the buffer of a worker.',
  explain({ job, now }) {
    if (job?.status !== 'QUEUED') return undefined;
    const since = job.queuedAt === null ? '' : ` since ${when(job.queuedAt, now)}`;
    const sentence = `Worker ${job.lockedBy ?? 'unknown'} has it in its buffer${since}, and starts it when a slot is free there.`;
    return { sentence, at: job.queuedAt, isFinal: true };
  },
};

function progressOf({ progress }: JobDocument): string {
  return progress === null ? '' : `, progress ${progress.value}${because(progress.note)}`;
}
