import { type JobFilterOptions, parseJobFilter } from '../config/query-options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { assertReason } from '../domain/identifiers.js';
import type { FinishedStatus } from '../domain/job/job.js';
import { JOB_STATES, type JobState } from '../domain/job/state.js';
import type { JobActions } from '../jobs/job-actions.js';
import { assertNever } from '../domain/language.js';
import type { JobChange } from '../store/jobs/change.js';
import type { Count } from '../store/jobs/counts.js';
import { type JobFilter, positionOf } from '../store/jobs/list.js';
import type { PagePosition } from '../store/pagination.js';
import type { Store } from '../store/store.js';

const BATCH_SIZE = 200;
/** Low enough to leave connections for running jobs. */
const CONCURRENT_WRITES = 8;

/** A change that can be made to many jobs. */
export type BulkAction = 'retry' | 'cancel' | 'hold' | 'unhold';

/** What a change of many jobs has done so far. */
export interface BulkProgress {
  /** Jobs that matched the filter. */
  matched: number;
  changed: number;
  /** How many of the changed jobs are running: their workers were asked to cancel them. */
  requested: number;
  /** Jobs that were not changed because their state had changed: counts by that state, or `notFound`. */
  refused: Record<string, number>;
}

/** What a change of many jobs did. */
export interface BulkChange extends BulkProgress {
  /** The signal was aborted before all jobs were changed. */
  isAborted: boolean;
}

/** Options of a change of many jobs. */
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

/** The state that did not allow the change, or `notFound`, if the job was not changed. */
type ChangeResult = JobChange['result'] | JobState;

/** In the order in which jobs reach them, so that a job that changes its state during the bulk change is still found. */
const STATES: Record<BulkAction, readonly JobState[]> = {
  retry: ['failed', 'completed', 'cancelled', 'skipped', 'expired'],
  cancel: ['held', 'blocked', 'delayed', 'retrying', 'waiting', 'prefetched', 'running'],
  hold: ['delayed', 'retrying', 'waiting'],
  unhold: ['held'],
};

/** How many jobs the action would change, up to `max`. */
export async function countAffected(
  { store, clock }: { store: Pick<Store, 'countJobs'>; clock: Clock },
  action: BulkAction,
  filter: JobFilterOptions,
  max: number,
): Promise<Count> {
  const counts = await Promise.all(
    filtersFor(action, filter).map((one) => store.countJobs(one, max, clock.now())),
  );
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
): Promise<BulkChange> {
  const { reason, onProgress, signal } = options;
  assertReason(reason);
  const createdUntil = deps.clock.now();
  const progress: BulkProgress = { matched: 0, changed: 0, requested: 0, refused: {} };
  // A job whose cancellation was requested may be found again under another status.
  const requested = new Set<string>();
  for (const one of filtersFor(action, filter)) {
    for await (const ids of readBatches(deps, { ...one, createdUntil })) {
      if (signal?.aborted === true) return { ...progress, isAborted: true };
      const fresh = ids.filter((id) => !requested.has(id));
      await forEachConcurrently(fresh, async (id) => {
        const result = await changeOne(deps.jobs, action, id, one.state, reason);
        if (result === 'requested') requested.add(id);
        addResult(progress, result);
      });
      progress.matched += fresh.length;
      onProgress?.({ ...progress, refused: { ...progress.refused } });
    }
  }
  return { ...progress, isAborted: false };
}

/** One filter per state: the requested one, or all that the action applies to. `retry` defaults to failed jobs. */
function filtersFor(action: BulkAction, input: JobFilterOptions): (JobFilter & { state: JobState })[] {
  const { state, ...rest } = parseJobFilter(input, `${action}Jobs() filter`);
  const allowed = STATES[action];
  if (state !== undefined && !allowed.includes(state)) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `${action}Jobs(): state must be one of ${allowed.join(', ')}, got '${state}'`,
    );
  }
  const states = state !== undefined ? [state] : action === 'retry' ? (['failed'] as const) : allowed;
  return states.map((one) => ({ ...rest, state: one }));
}

async function* readBatches({ store, clock }: BulkDeps, filter: JobFilter): AsyncGenerator<string[]> {
  let after: PagePosition | undefined;
  for (;;) {
    const jobs = await store.listJobs({ filter, after, limit: BATCH_SIZE }, clock.now());
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
  state: JobState,
  reason: string | undefined,
): Promise<ChangeResult> {
  const change = await callAction(jobs, action, id, state, reason);
  return change.result === 'refused' && change.state !== null ? change.state : change.result;
}

function callAction(
  jobs: JobActions,
  action: BulkAction,
  id: string,
  state: JobState,
  reason: string | undefined,
): Promise<JobChange> {
  switch (action) {
    case 'retry':
      return jobs.retry(id, [JOB_STATES[state].status as FinishedStatus]);
    case 'cancel':
      return jobs.cancel(id, reason);
    case 'hold':
      return jobs.hold(id, reason);
    case 'unhold':
      return jobs.unhold(id);
    default:
      return assertNever(action);
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
