import { type JobFilterOptions, parseJobFilter } from '../config/query-options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { assertReason } from '../domain/identifiers.js';
import { FINISHED_STATUSES, type FinishedStatus, type JobStatus } from '../domain/job/job.js';
import { TRANSITIONS } from '../domain/job/transitions.js';
import type { JobActions } from '../jobs/job-actions.js';
import type { Count } from '../store/jobs/counts.js';
import { type JobFilter, positionOf } from '../store/jobs/list.js';
import type { PagePosition } from '../store/pagination.js';
import type { Store } from '../store/store.js';

const BATCH_SIZE = 200;
/** Low enough to leave connections for running jobs. */
const CONCURRENT_WRITES = 8;

export type BulkAction = 'retry' | 'cancel' | 'hold' | 'release';

export interface BulkProgress {
  /** Jobs that matched the filter. */
  matched: number;
  changed: number;
  /** How many of the changed jobs are running: their workers were asked to cancel them. */
  requested: number;
  /** Jobs that were not changed because their status had changed: counts by that status, or `notFound`. */
  refused: Record<string, number>;
}

export interface BulkAnswer extends BulkProgress {
  /** The signal was aborted before all jobs were changed. */
  isAborted: boolean;
}

export interface BulkOptions {
  /** Stored with jobs that are cancelled or held. */
  reason?: string;
  /** Called after each batch of 200 jobs. */
  onProgress?: (progress: BulkProgress) => void;
  /** Stops after the current batch. Jobs that were already changed stay changed. */
  signal?: AbortSignal;
}

interface BulkDeps {
  store: Pick<Store, 'listJobs'>;
  clock: Clock;
  jobs: JobActions;
}

/** A status, or `notFound`, if the job was not changed. */
type ChangeResult = 'changed' | 'requested' | JobStatus | 'notFound';

/** In the order in which jobs reach them, so that a job that changes its status during the bulk change is still found. */
const STATUSES: Record<BulkAction, readonly JobStatus[]> = {
  retry: FINISHED_STATUSES,
  cancel: [...TRANSITIONS.cancel.from, 'RUNNING'],
  hold: TRANSITIONS.hold.from,
  release: TRANSITIONS.unhold.from,
};

/** How many jobs the action would change, up to `max`. */
export async function countAffected(
  store: Pick<Store, 'countJobs'>,
  action: BulkAction,
  filter: JobFilterOptions,
  max: number,
): Promise<Count> {
  const counts = await Promise.all(filtersFor(action, filter).map((one) => store.countJobs(one, max)));
  const count = counts.reduce((total, one) => total + one.count, 0);
  return { count: Math.min(count, max), atLeast: count > max || counts.some(({ atLeast }) => atLeast) };
}

/**
 * Changes every matching job with the same guarded write as a single change. If a job changed in the meantime, the write
 * is still legal or changes nothing. After an error or an abort, calling it again continues with the remaining jobs.
 */
export async function changeMany(
  deps: BulkDeps,
  action: BulkAction,
  filter: JobFilterOptions,
  options: BulkOptions = {},
): Promise<BulkAnswer> {
  const { reason, onProgress, signal } = options;
  assertReason(reason);
  const createdUntil = deps.clock.now();
  const progress: BulkProgress = { matched: 0, changed: 0, requested: 0, refused: {} };
  // A job whose cancellation was requested may be found again under another status.
  const requested = new Set<string>();
  for (const one of filtersFor(action, filter)) {
    for await (const ids of readBatches(deps.store, { ...one, createdUntil })) {
      if (signal?.aborted === true) return { ...progress, isAborted: true };
      const fresh = ids.filter((id) => !requested.has(id));
      await forEachConcurrently(fresh, async (id) => {
        const result = await changeOne(deps.jobs, action, id, one.status, reason);
        if (result === 'requested') requested.add(id);
        addResult(progress, result);
      });
      progress.matched += fresh.length;
      onProgress?.({ ...progress, refused: { ...progress.refused } });
    }
  }
  return { ...progress, isAborted: false };
}

/** One filter per status: the requested one, or all that the action applies to. `retry` defaults to FAILED. */
function filtersFor(action: BulkAction, input: JobFilterOptions): (JobFilter & { status: JobStatus })[] {
  const { status, ...rest } = parseJobFilter(input, `${action}Jobs() filter`);
  const allowed = STATUSES[action];
  if (status !== undefined && !allowed.includes(status)) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `${action}Jobs(): status must be one of ${allowed.join(', ')}, got '${status}'`,
    );
  }
  const statuses = status !== undefined ? [status] : action === 'retry' ? (['FAILED'] as const) : allowed;
  return statuses.map((one) => ({ ...rest, status: one }));
}

async function* readBatches(store: Pick<Store, 'listJobs'>, filter: JobFilter): AsyncGenerator<string[]> {
  let after: PagePosition | undefined;
  for (;;) {
    const jobs = await store.listJobs({ filter, after, limit: BATCH_SIZE });
    const last = jobs.at(-1);
    if (last === undefined) return;
    // Taken before the jobs are changed, which may change their position in the list.
    after = positionOf(filter, last);
    yield jobs.map(({ _id }) => _id);
    if (jobs.length < BATCH_SIZE) return;
  }
}

async function changeOne(
  jobs: JobActions,
  action: BulkAction,
  id: string,
  status: JobStatus,
  reason: string | undefined,
): Promise<ChangeResult> {
  switch (action) {
    case 'retry': {
      const result = await jobs.retry(id, [status as FinishedStatus]);
      return result.retried ? 'changed' : (result.status ?? 'notFound');
    }
    case 'cancel': {
      const result = await jobs.cancel(id, reason);
      if (result.answer === 'alreadyFinished') return result.status;
      return result.answer === 'cancelled' ? 'changed' : result.answer;
    }
    case 'hold':
    case 'release': {
      const result = await (action === 'hold' ? jobs.hold(id, reason) : jobs.unhold(id));
      return result.changed ? 'changed' : (result.status ?? 'notFound');
    }
  }
}

function addResult(progress: BulkProgress, result: ChangeResult): void {
  if (result === 'changed' || result === 'requested') progress.changed++;
  else progress.refused[result] = (progress.refused[result] ?? 0) + 1;
  if (result === 'requested') progress.requested++;
}

/** After an error no further work starts; the error is thrown when the work in progress has ended. */
async function forEachConcurrently(
  ids: readonly string[],
  work: (id: string) => Promise<void>,
): Promise<void> {
  // All loops take ids from one generator. A loop that throws closes it, which ends the other loops.
  const queue = (function* () {
    yield* ids;
  })();
  const loop = async (): Promise<void> => {
    for (const id of queue) await work(id);
  };
  const results = await Promise.allSettled(Array.from({ length: CONCURRENT_WRITES }, loop));
  const rejected = results.find((result) => result.status === 'rejected');
  if (rejected !== undefined) throw rejected.reason;
}
