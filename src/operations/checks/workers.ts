import { capable } from '../gates/workers.js';
import { error, ok, some, warning, type Check } from './check.js';
import type { DueNow } from './facts.js';

/** A lock that expired this long ago, in milliseconds, should have been swept. */
const UNSWEPT = 120_000;
const MOST_EXPIRED = 100;

export const workersAlive: Check = {
  name: 'workersAlive',
  async examine({ liveWorkers, dueNow }) {
    const live = await liveWorkers();
    if (live.length > 0) return ok(`${live.length} live: ${some(live.map(({ id }) => id))}.`);
    return (await dueNow()).pairs.length > 0
      ? error('No worker is alive, and jobs are due.', 'Start a worker.')
      : warning('No worker is alive.', 'Start a worker.');
  },
};

export const workerVersions: Check = {
  name: 'workerVersions',
  async examine({ liveWorkers }) {
    const versions = [...new Set((await liveWorkers()).map(({ version }) => version))].sort();
    if (versions.length <= 1)
      return ok(`Live workers are of one version (${versions[0] ?? 'none is alive'}).`);
    const advice = 'During an update that is as it should be; otherwise update the older ones.';
    return warning(`Live workers are of several versions: ${some(versions)}.`, advice);
  },
};

export const handlers: Check = {
  name: 'handlers',
  async examine({ liveWorkers, dueNow }) {
    const live = await liveWorkers();
    if (live.length === 0) return ok('No worker is alive to have handlers.');
    const known = new Set(live.flatMap(({ taskTypes }) => taskTypes));
    const due = await dueNow();
    const unknown = unique(
      due.pairs.filter(({ taskType }) => !known.has(taskType)).map(({ taskType }) => taskType),
    );
    if (unknown.length === 0)
      return ok(`Live workers have handlers for all jobs that are due${lookedAt(due)}.`);
    const advice = 'Deploy a worker that registers them, or cancel the jobs.';
    return error(`Jobs are due that no live worker has a handler for: ${some(unknown)}.`, advice);
  },
};

/** A queue is served for a job by a worker that has its handler as well. */
export const queues: Check = {
  name: 'queues',
  async examine({ liveWorkers, dueNow }) {
    const live = await liveWorkers();
    if (live.length === 0) return ok('No worker is alive to serve queues.');
    const served = new Set(live.flatMap((worker) => worker.queues));
    const due = await dueNow();
    const unserved = unique(due.pairs.filter(({ queue }) => !served.has(queue)).map(({ queue }) => queue));
    if (unserved.length > 0) {
      const advice = 'Start a worker with them among its `queues`, or cancel the jobs.';
      return error(`Jobs are due in queues that no live worker serves: ${some(unserved)}.`, advice);
    }
    // Those without a handler anywhere are the business of the check before.
    const known = new Set(live.flatMap(({ taskTypes }) => taskTypes));
    const apart = due.pairs.filter((pair) => known.has(pair.taskType) && capable(live, pair).length === 0);
    if (apart.length > 0) {
      const names = apart.map(({ queue, taskType }) => `${taskType} in ${queue}`).sort();
      const advice =
        'Give a worker both: the queue among its `queues`, and the handler. Or cancel or move the jobs.';
      return error(
        `Jobs are due whose queue some live workers serve and whose handler others have, but none does both: ${some(names)}.`,
        advice,
      );
    }
    return ok(`Live workers with their handlers serve the queues of all jobs that are due${lookedAt(due)}.`);
  },
};

export const expiredLocks: Check = {
  name: 'expiredLocks',
  async examine(_, { store, clock }) {
    const before = new Date(clock.now().getTime() - UNSWEPT);
    const expired = await store.findExpired(before, MOST_EXPIRED);
    if (expired.length === 0) return ok('No lock has expired without being swept.');
    const count = expired.length === MOST_EXPIRED ? `${MOST_EXPIRED} or more` : String(expired.length);
    const finding = `${count} jobs have locks that expired minutes ago: ${some(expired.map(({ _id }) => _id))}.`;
    return error(
      finding,
      'A live worker sweeps them: start one, or look in its log for trouble with the sweep.',
    );
  },
};

/** What was not looked at may be otherwise. */
function lookedAt({ isComplete }: DueNow): string {
  return isComplete ? '' : ', of those looked at: there are more queues, task types and priorities than that';
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}
