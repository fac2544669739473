import { type JobFilterOptions, parseJobFilter } from '../config/query-options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { MAX_REASON_LENGTH } from '../domain/identifiers.js';
import {
  FINISHED_STATUSES,
  type FinishedStatus,
  type JobDocument,
  type JobStatus,
  UNCLAIMED_STATUSES,
} from '../domain/job/job.js';
import { JOB_STATES, type JobState } from '../domain/job/state.js';
import { assertNever } from '../domain/language.js';
import { fn, matching, name, object, oneOf, parse, text } from '../domain/validation.js';
import type { JobActions } from '../jobs/job-actions.js';
import type { JobChange } from '../store/jobs/change.js';
import type { Count } from '../store/jobs/counts.js';
import { keptOccurrencesSince } from '../store/jobs/delete.js';
import { type JobFilter, positionOf } from '../store/jobs/list.js';
import type { PagePosition } from '../store/pagination.js';
import type { Store } from '../store/store.js';

const BATCH_SIZE = 200;
/** Low enough to leave connections for running jobs. */
const CONCURRENT_WRITES = 8;

/** A change that can be made to many jobs. */
export type BulkAction = 'retry' | 'cancel' | 'hold' | 'unhold' | 'delete';

/** A change whose jobs can be counted first; `empty` is what `emptyQueue()` does. */
export type CountedAction = BulkAction | 'empty';

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

/** What `emptyQueue()` did. */
export interface EmptiedQueue extends BulkChange {
  /** How many of the changed jobs belong to schedules: they were cancelled, not deleted. */
  cancelled: number;
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
  store: Pick<Store, 'deleteUnchanged' | 'listJobs'>;
  clock: Clock;
  jobs: JobActions;
}

/** The state that did not allow the change, or `notFound`, if the job was not changed. */
type ChangeResult = JobChange['result'] | JobState;

/** Changes one batch of jobs that were read in this state. */
type ChangeBatch = (jobs: readonly JobDocument[], state: JobState) => Promise<readonly ChangeResult[]>;

/** In the order in which jobs reach them, so that a job that changes its state during the bulk change is still found. */
const STATES: Record<CountedAction, readonly JobState[]> = {
  retry: ['failed', 'completed', 'cancelled', 'skipped', 'expired'],
  cancel: ['held', 'blocked', 'delayed', 'retrying', 'waiting', 'prefetched', 'running'],
  hold: ['delayed', 'retrying', 'waiting'],
  unhold: ['held'],
  delete: ['failed', 'completed', 'cancelled', 'skipped', 'expired'],
  empty: ['held', 'blocked', 'delayed', 'retrying', 'waiting'],
};

const actionShape = oneOf(...(Object.keys(STATES) as CountedAction[]));

const bulkShape = object<BulkOptions>({
  reason: text(MAX_REASON_LENGTH),
  onProgress: fn(),
  signal: matching('an AbortSignal', (value): value is AbortSignal => value instanceof AbortSignal),
});

/** How many jobs the action would change, up to `max`. */
export async function countAffected(
  { store, clock }: { store: Pick<Store, 'countJobs'>; clock: Clock },
  action: CountedAction,
  filter: JobFilterOptions,
  max: number,
): Promise<Count> {
  const now = clock.now();
  parse(actionShape, action, 'countMatching() action', 'INVALID_ARGUMENT');
  const counts = await Promise.all(
    filtersFor(action, filter, now).map((one) => store.countJobs(one, max, now)),
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
  input: BulkOptions = {},
): Promise<BulkChange> {
  const options = parse(bulkShape, input, `${action}Jobs() options`, 'INVALID_ARGUMENT');
  const filters = filtersFor(action, filter, deps.clock.now());
  if (action === 'delete')
    return changeBatches(deps, filters, options, (jobs) => deleteBatch(deps, jobs, FINISHED_STATUSES));
  // A job whose cancellation was requested may be found again under another status.
  const requested = new Set<string>();
  return changeBatches(deps, filters, options, (jobs, state) => {
    const fresh = jobs.filter(({ _id }) => !requested.has(_id));
    return mapConcurrently(fresh, async ({ _id }) => {
      const result = toResult(await callAction(deps.jobs, action, _id, state, options.reason));
      if (result === 'requested') requested.add(_id);
      return result;
    });
  });
}

/**
 * Deletes the jobs of a queue that no worker has claimed. Jobs of schedules are cancelled instead: the job of an
 * occurrence is the record that it was created, and without it a worker that planned the same occurrence could create
 * it again.
 */
export async function emptyQueue(
  deps: BulkDeps,
  queue: string,
  input: BulkOptions = {},
): Promise<EmptiedQueue> {
  const options = parse(bulkShape, input, 'emptyQueue() options', 'INVALID_ARGUMENT');
  const { reason = 'the queue was emptied' } = options;
  let cancelled = 0;
  const cancel = async (job: JobDocument): Promise<ChangeResult> => {
    const result = toResult(await deps.jobs.cancelUnclaimed(job, reason));
    if (result === 'changed') cancelled++;
    return result;
  };
  const filters = filtersFor(
    'empty',
    { queue: parse(name, queue, 'emptyQueue() queue', 'INVALID_ARGUMENT') },
    deps.clock.now(),
  );
  const change = await changeBatches(deps, filters, options, async (jobs) => [
    ...(await deleteBatch(
      deps,
      jobs.filter(({ schedule }) => schedule === null),
      UNCLAIMED_STATUSES,
    )),
    ...(await mapConcurrently(
      jobs.filter(({ schedule }) => schedule !== null),
      cancel,
    )),
  ]);
  return { ...change, cancelled };
}

async function changeBatches(
  deps: BulkDeps,
  filters: readonly StateFilter[],
  { onProgress, signal }: BulkOptions,
  changeBatch: ChangeBatch,
): Promise<BulkChange> {
  const createdUntil = deps.clock.now();
  const progress: BulkProgress = { matched: 0, changed: 0, requested: 0, refused: {} };
  for (const filter of filters) {
    for await (const jobs of readBatches(deps, { ...filter, createdUntil })) {
      if (signal?.aborted === true) return { ...progress, isAborted: true };
      const results = await changeBatch(jobs, filter.state);
      for (const result of results) addResult(progress, result);
      progress.matched += results.length;
      onProgress?.({ ...progress, refused: { ...progress.refused } });
    }
  }
  return { ...progress, isAborted: false };
}

type StateFilter = JobFilter & { state: JobState };

/** One filter per state: the requested one, or all that the action applies to. `retry` defaults to failed jobs. */
function filtersFor(action: CountedAction, input: JobFilterOptions, now: Date): StateFilter[] {
  const method = action === 'empty' ? 'emptyQueue()' : `${action}Jobs()`;
  const { state, ...rest } = parseJobFilter(input, `${method} filter`);
  const allowed = STATES[action];
  if (state !== undefined && !allowed.includes(state)) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `${method}: state must be one of ${allowed.join(', ')}, got '${state}'`,
    );
  }
  const states = state !== undefined ? [state] : action === 'retry' ? (['failed'] as const) : allowed;
  const kept = action === 'delete' ? { exceptOccurrencesSince: keptOccurrencesSince(now) } : {};
  return states.map((one) => ({ ...rest, ...kept, state: one }));
}

async function* readBatches({ store, clock }: BulkDeps, filter: JobFilter): AsyncGenerator<JobDocument[]> {
  let after: PagePosition | undefined;
  for (;;) {
    const jobs = await store.listJobs({ filter, after, limit: BATCH_SIZE }, clock.now());
    const last = jobs.at(-1);
    if (last === undefined) return;
    // Taken before the jobs are changed, which may change their position in the list.
    after = positionOf(filter, last);
    yield jobs;
    if (jobs.length < BATCH_SIZE) return;
  }
}

/** One statement per fence instead of one per job. */
async function deleteBatch(
  { store, clock }: BulkDeps,
  jobs: readonly JobDocument[],
  statuses: readonly JobStatus[],
): Promise<ChangeResult[]> {
  const { deleted, left } = await store.deleteUnchanged(jobs, statuses, clock.now());
  const gone = jobs.length - deleted - left.length;
  return [
    ...Array.from({ length: deleted }, () => 'changed' as const),
    ...left,
    ...Array.from({ length: gone }, () => 'notFound' as const),
  ];
}

function toResult({ result, state }: JobChange): ChangeResult {
  return result === 'refused' && state !== null ? state : result;
}

function callAction(
  jobs: JobActions,
  action: Exclude<BulkAction, 'delete'>,
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
async function mapConcurrently<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  // All loops take items from one generator. A loop that throws closes it, which ends the other loops.
  const queue = (function* () {
    yield* items;
  })();
  const loop = async (): Promise<void> => {
    for (const item of queue) results.push(await work(item));
  };
  const loops = await Promise.allSettled(Array.from({ length: CONCURRENT_WRITES }, loop));
  const rejected = loops.find((result) => result.status === 'rejected');
  if (rejected !== undefined) throw rejected.reason;
  return results;
}
