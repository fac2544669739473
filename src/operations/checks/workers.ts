import type { CheckParts } from './check.js';
import { error, ok, some, warning, type Check } from './check.js';
import { listWorkers, type WorkerView } from '../workers.js';

/** Queues, task types and priorities that are looked at one by one. */
const MOST_HEADS = 500;
/** Milliseconds that may take. */
const MOST_LOOKING = 2000;
/** A lock that expired this long ago, in milliseconds, should have been swept. */
const UNSWEPT = 120_000;
const MOST_EXPIRED = 100;

async function liveWorkers({ store, clock }: CheckParts): Promise<WorkerView[]> {
  return (await listWorkers(store, clock)).filter(({ isLive }) => isLive);
}

/** The queues and task types with jobs that are due. */
async function dueNow({ store, clock }: CheckParts): Promise<{ queue: string; taskType: string }[]> {
  const now = clock.now();
  const end = clock.monotonic() + MOST_LOOKING;
  const { heads } = await store.findWaitingHeads(MOST_HEADS, () => clock.monotonic() > end);
  return heads.filter(({ nextRunAt }) => nextRunAt <= now);
}

export const workersAlive: Check = {
  name: 'workersAlive',
  async examine(parts) {
    const live = await liveWorkers(parts);
    if (live.length > 0) return ok(`${live.length} live: ${some(live.map(({ id }) => id))}.`);
    return (await dueNow(parts)).length > 0
      ? error('No worker is alive, and jobs are due.', 'Start a worker.')
      : warning('No worker is alive.', 'Start a worker.');
  },
};

export const workerVersions: Check = {
  name: 'workerVersions',
  async examine(parts) {
    const versions = [...new Set((await liveWorkers(parts)).map(({ version }) => version))].sort();
    if (versions.length <= 1)
      return ok(`Live workers are of one version (${versions[0] ?? 'none is alive'}).`);
    const advice = 'During an update that is as it should be; otherwise update the older ones.';
    return warning(`Live workers are of several versions: ${some(versions)}.`, advice);
  },
};

export const handlers: Check = {
  name: 'handlers',
  async examine(parts) {
    const live = await liveWorkers(parts);
    if (live.length === 0) return ok('No worker is alive to have handlers.');
    const known = new Set(live.flatMap(({ taskTypes }) => taskTypes));
    const unknown = unique((await dueNow(parts)).map(({ taskType }) => taskType)).filter(
      (taskType) => !known.has(taskType),
    );
    if (unknown.length === 0) return ok('Live workers have handlers for all jobs that are due.');
    const advice = 'Deploy a worker that registers them, or cancel the jobs.';
    return error(`Jobs are due that no live worker has a handler for: ${some(unknown)}.`, advice);
  },
};

export const queues: Check = {
  name: 'queues',
  async examine(parts) {
    const live = await liveWorkers(parts);
    if (live.length === 0) return ok('No worker is alive to serve queues.');
    const served = new Set(live.flatMap((worker) => worker.queues));
    const unserved = unique((await dueNow(parts)).map(({ queue }) => queue)).filter(
      (queue) => !served.has(queue),
    );
    if (unserved.length === 0) return ok('Live workers serve all queues with jobs that are due.');
    const advice = 'Start a worker with them among its `queues`, or cancel the jobs.';
    return error(`Jobs are due in queues that no live worker serves: ${some(unserved)}.`, advice);
  },
};

export const expiredLocks: Check = {
  name: 'expiredLocks',
  async examine({ store, clock }) {
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

function unique(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}
