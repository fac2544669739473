import { nearestWord } from '../../domain/did-you-mean.js';
import type { JobDocument } from '../../domain/job/job.js';
import type { WorkerView } from '../lists.js';
import { blocked, type ExplainCheck, plural } from './check.js';

export const alive: ExplainCheck = {
  name: 'alive',
  passed: 'Workers are alive.',
  explain: ({ workers }) => (workers.length > 0 ? undefined : blocked('No worker is alive: start one.')),
};

export const handler: ExplainCheck = {
  name: 'handler',
  passed: 'A live worker has a handler for it.',
  explain({ job, workers }) {
    if (job === null || workers.length === 0 || withHandler(workers, job.taskType).length > 0)
      return undefined;
    const near = nearestWord(job.taskType, [...new Set(workers.flatMap(({ taskTypes }) => taskTypes))]);
    const known = near === undefined ? '' : ` (the closest known type is '${near}')`;
    return blocked(`No live worker has a handler for '${job.taskType}'${known}.`);
  },
};

export const queue: ExplainCheck = {
  name: 'queue',
  passed: 'A live worker with its handler serves its queue.',
  explain({ job, workers }) {
    if (job === null || workers.length === 0 || capable(workers, job).length > 0) return undefined;
    const isServed = workers.some(({ queues }) => queues.includes(job.queue));
    const served = [...new Set(workers.flatMap(({ queues }) => queues))].sort().slice(0, 10).join(', ');
    if (!isServed) return blocked(`No live worker serves its queue '${job.queue}' (they serve: ${served}).`);
    // The check before this one reports a missing handler.
    if (withHandler(workers, job.taskType).length === 0) return undefined;
    return blocked(
      `No live worker both serves its queue '${job.queue}' and has a handler for '${job.taskType}'.`,
    );
  },
};

export const draining: ExplainCheck = {
  name: 'draining',
  passed: 'A worker that can run it is not draining.',
  explain({ job, workers }) {
    const able = job === null ? [] : capable(workers, job);
    const [first] = able;
    if (first === undefined || able.some(({ isDraining }) => !isDraining)) return undefined;
    const who =
      able.length === 1 ? 'The worker that can run it is' : `All ${able.length} workers that can run it are`;
    return blocked(
      `${who} draining: start another one, or let it claim jobs again with: chronos workers undrain ${first.id}.`,
    );
  },
};

export const busy: ExplainCheck = {
  name: 'busy',
  passed: 'A worker that can run it has a free slot.',
  explain({ job, workers }) {
    const able = job === null ? [] : capable(workers, job).filter(({ isDraining }) => !isDraining);
    if (job === null || able.length === 0 || able.some((worker) => hasFreeSlot(worker, job.queue)))
      return undefined;
    // These have free slots, but only for other queues.
    const limited = able.filter(({ running, concurrency }) => running < concurrency);
    if (limited.length > 0) {
      const names = limited.map(({ id }) => id).join(', ');
      return blocked(
        `It waits for a free slot of its queue '${job.queue}': queueSettings limits the slots, and they are taken in ${names}.`,
      );
    }
    const slots = able.reduce((total, { concurrency }) => total + concurrency, 0);
    const who =
      able.length === 1 ? 'the worker that can run it is' : `all ${able.length} workers that can run it are`;
    return blocked(`It waits for a free slot: ${who} busy (${plural(slots, 'slot')} taken).`);
  },
};

/** A slot for a job of this queue. */
export function hasFreeSlot(
  { running, concurrency, isDraining, queueSlots }: WorkerView,
  queueName: string,
): boolean {
  const limit = queueSlots.find((one) => one.queue === queueName);
  return !isDraining && running < concurrency && (limit === undefined || limit.taken < limit.slots);
}

function withHandler(workers: readonly WorkerView[], taskType: string): WorkerView[] {
  return workers.filter(({ taskTypes }) => taskTypes.includes(taskType));
}

/** Workers that have the job's handler and serve its queue. */
export function capable(
  workers: readonly WorkerView[],
  { queue: name, taskType }: Pick<JobDocument, 'queue' | 'taskType'>,
): WorkerView[] {
  return withHandler(workers, taskType).filter(({ queues }) => queues.includes(name));
}
