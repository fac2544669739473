import type { JobDocument } from '../../domain/job.js';
import type { Gate } from './gate.js';
import { because, when } from './phrases.js';

export const held: Gate = {
  name: 'held',
  passed: 'It is not held.',
  explain({ job, now }) {
    if (job?.status !== 'PENDING') return undefined;
    const since = job.held === null ? '' : ` since ${when(job.held.at, now)}`;
    return { sentence: `It is held${since}${because(job.held?.reason)}; release it.`, at: null };
  },
};

export const due: Gate = {
  name: 'due',
  passed: 'It is due.',
  explain({ job, now }) {
    if (job === null || job.nextRunAt <= now) return undefined;
    const time = when(job.nextRunAt, now);
    return { sentence: `${reasonOf(job)} ${time}.`, at: job.nextRunAt };
  },
};

function reasonOf({ attempts, crashes, error }: JobDocument): string {
  if (error === null || attempts + crashes === 0) return 'Not due until';
  return `Retrying after attempt ${attempts + crashes} failed (${error.name}${because(error.message)}) at`;
}
