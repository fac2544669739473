import { isFinished, type JobDocument } from '../../domain/job.js';
import type { Gate } from './gate.js';
import { because, count, when } from './phrases.js';

export const finished: Gate = {
  name: 'finished',
  passed: 'It is not finished.',
  explain({ job, now }) {
    if (job === null || !isFinished(job.status)) return undefined;
    const at = job.finishedAt;
    const time = at === null ? '' : ` at ${when(at, now)}`;
    return { sentence: `${fateOf(job)}${time}${because(reasonOf(job))}.`, at, isFinal: true };
  },
};

function fateOf(job: JobDocument): string {
  switch (job.status) {
    case 'COMPLETED':
      return 'It completed';
    case 'FAILED':
      return `It failed for good after ${count(job.attempts + job.crashes, 'attempt')}`;
    default:
      return job.skipReason === null ? 'It was cancelled' : 'A filter of its definition skipped it';
  }
}

function reasonOf(job: JobDocument): string | null {
  if (job.status === 'COMPLETED') return null;
  if (job.status === 'FAILED') return job.error?.message ?? null;
  return job.skipReason ?? job.cancelRequested?.reason ?? null;
}
