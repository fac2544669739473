import { isSuspect, type JobDocument } from '../../domain/job.js';
import type { Gate } from './gate.js';
import { count } from './phrases.js';
import { capable, hasFreeSlot } from './workers.js';

/** A suspect never waits in a buffer, and a process has one at a time. */
export const suspect: Gate = {
  name: 'suspect',
  passed: 'It need not wait for another job that may take its process with it.',
  explain({ job, workers, suspects }) {
    if (job === null || !isSuspect(job)) return undefined;
    const free = capable(workers, job).filter(hasFreeSlot);
    const inTheWay = free.map(({ id }) => suspects.find(({ lockedBy }) => lockedBy === id));
    const [first] = inTheWay;
    if (first === undefined || inTheWay.includes(undefined)) return undefined;
    const whose =
      free.length === 1
        ? `the worker that could run it has ${first._id}`
        : `all ${free.length} workers that could run it have one (${first._id} is the first)`;
    const sentence = `${pastOf(job)}, and jobs like that run one at a time per process: ${whose}, and it waits for that to end.`;
    return { sentence, at: null };
  },
};

function pastOf({ crashes, abandoned }: JobDocument): string {
  return crashes > 0
    ? `It took its process with it ${count(crashes, 'time')}`
    : `Its process died ${count(abandoned, 'time')} before it began`;
}
