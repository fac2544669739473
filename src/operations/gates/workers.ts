import type { JobDocument } from '../../domain/job.js';
import { nearest } from '../../domain/nearest.js';
import type { WorkerView } from '../workers.js';
import type { Gate } from './gate.js';
import { count } from './phrases.js';

export const alive: Gate = {
  name: 'alive',
  passed: 'Workers are alive.',
  explain: ({ workers }) =>
    workers.length > 0 ? undefined : { sentence: 'No worker is alive: start one.', at: null },
};

export const handler: Gate = {
  name: 'handler',
  passed: 'A live worker has a handler for it.',
  explain({ job, workers }) {
    if (job === null || workers.length === 0 || withHandler(workers, job.taskType).length > 0)
      return undefined;
    const near = nearest(job.taskType, [...new Set(workers.flatMap(({ taskTypes }) => taskTypes))]);
    const known = near === undefined ? '' : ` (the nearest known: '${near}')`;
    return { sentence: `No live worker has a handler for '${job.taskType}'${known}.`, at: null };
  },
};

export const queue: Gate = {
  name: 'queue',
  passed: 'A live worker with its handler serves its queue.',
  explain({ job, workers }) {
    if (job === null || workers.length === 0 || capable(workers, job).length > 0) return undefined;
    const isServed = workers.some(({ queues }) => queues.includes(job.queue));
    const served = [...new Set(workers.flatMap(({ queues }) => queues))].sort().slice(0, 10).join(', ');
    if (!isServed)
      return {
        sentence: `No live worker serves its queue '${job.queue}' (served are: ${served}).`,
        at: null,
      };
    // Without a handler anywhere, the gate before this one has said so.
    if (withHandler(workers, job.taskType).length === 0) return undefined;
    const sentence = `Live workers serve its queue '${job.queue}' and others have a handler for '${job.taskType}', but none does both.`;
    return { sentence, at: null };
  },
};

export const busy: Gate = {
  name: 'busy',
  passed: 'A worker that can run it has a free slot.',
  explain({ job, workers }) {
    const able = job === null ? [] : capable(workers, job);
    if (able.length === 0 || able.some(hasFreeSlot)) return undefined;
    const slots = able.reduce((total, { concurrency }) => total + concurrency, 0);
    const whose =
      able.length === 1 ? 'the worker that can run it is' : `all ${able.length} workers that can run it are`;
    const sentence = `It waits for a free slot: ${whose} busy (${count(slots, 'slot')} taken).`;
    return { sentence, at: null };
  },
};

export function hasFreeSlot({ running, concurrency }: WorkerView): boolean {
  return running < concurrency;
}

function withHandler(workers: readonly WorkerView[], taskType: string): WorkerView[] {
  return workers.filter(({ taskTypes }) => taskTypes.includes(taskType));
}

/** Those that have its handler and serve its queue. */
export function capable(
  workers: readonly WorkerView[],
  { queue: name, taskType }: Pick<JobDocument, 'queue' | 'taskType'>,
): WorkerView[] {
  return withHandler(workers, taskType).filter(({ queues }) => queues.includes(name));
}
