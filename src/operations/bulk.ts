import { readJobFilter, type JobFilterOptions } from '../config/query-options.js';
import { cancelJob, type CancelParts } from '../dispatch/cancel-job.js';
import { ChronosError } from '../domain/errors.js';
import { FINISHED_STATUSES, type FinishedStatus, type JobStatus } from '../domain/job.js';
import { checkReason } from '../domain/names.js';
import { TRANSITIONS } from '../domain/transitions.js';
import { placeOf, type Count, type JobFilter } from '../store/list-jobs.js';
import type { Place } from '../store/pages.js';
import type { Store } from '../store/store.js';

const CHUNK = 200;
/** Statements under way at once: a person's change must not take all connections from the jobs. */
const AT_ONCE = 8;

export type BulkAction = 'retry' | 'cancel' | 'hold' | 'release';

/** How far a change of many jobs has come. */
export interface BulkProgress {
  /** Jobs that were found. */
  matched: number;
  changed: number;
  /** Of those: jobs that run, and whose worker was asked to cancel them. */
  requested: number;
  /** Jobs that were left alone, by the status they had meanwhile, or `notFound`. */
  refused: Record<string, number>;
}

export interface BulkAnswer extends BulkProgress {
  /** The signal was aborted before all were done. */
  isAborted: boolean;
}

export interface BulkOptions {
  /** Why; kept with jobs that are cancelled or held. */
  reason?: string;
  /** Called after every couple of hundred jobs. */
  onProgress?: (progress: BulkProgress) => void;
  /** Ends it after the jobs under way. What was changed stays changed. */
  signal?: AbortSignal;
}

export interface BulkParts extends CancelParts {
  store: Pick<Store, 'cancel' | 'countJobs' | 'hold' | 'listJobs' | 'retry' | 'unhold'>;
  engine: CancelParts['engine'] & { nudge(): void };
}

/** What became of one job. */
type Change = 'changed' | 'requested' | { refused: string };

/** In the order jobs go through them: one that moves on meanwhile is met later, and not missed. */
const STATUSES: Record<BulkAction, readonly JobStatus[]> = {
  retry: FINISHED_STATUSES,
  cancel: [...TRANSITIONS.cancel.from, 'RUNNING'],
  hold: TRANSITIONS.hold.from,
  release: TRANSITIONS.unhold.from,
};

/** How many jobs an action would find. */
export async function countFor(
  store: Pick<Store, 'countJobs'>,
  action: BulkAction,
  filter: JobFilterOptions,
  most: number,
): Promise<Count> {
  const counts = await Promise.all(filtersFor(action, filter).map((one) => store.countJobs(one, most)));
  const count = counts.reduce((total, one) => total + one.count, 0);
  return { count: Math.min(count, most), atLeast: count > most || counts.some(({ atLeast }) => atLeast) };
}

/**
 * Changes all jobs that match, one by one through the same guarded writes as a single one: whatever happens to a job in
 * between, it is changed legally or left alone. Doing it again, after an error or an abort, goes on with the rest.
 */
export async function changeMany(
  parts: BulkParts,
  action: BulkAction,
  filter: JobFilterOptions,
  options: BulkOptions = {},
): Promise<BulkAnswer> {
  const { reason, onProgress, signal } = options;
  checkReason(reason);
  const filters = filtersFor(action, filter);
  const createdUntil = parts.clock.now();
  const progress: BulkProgress = { matched: 0, changed: 0, requested: 0, refused: {} };
  // A job that was asked to end is met again among those that run.
  const asked = new Set<string>();
  for (const one of filters) {
    for await (const ids of chunksOf(parts.store, { ...one, createdUntil })) {
      if (signal?.aborted === true) return { ...progress, isAborted: true };
      const fresh = ids.filter((id) => !asked.has(id));
      await forEach(fresh, async (id) => {
        const change = await changeOne(parts, action, id, one.status, reason ?? null);
        if (change === 'requested') asked.add(id);
        note(progress, change);
      });
      progress.matched += fresh.length;
      parts.engine.nudge();
      onProgress?.({ ...progress, refused: { ...progress.refused } });
    }
  }
  return { ...progress, isAborted: false };
}

/** One for each status, the one that is asked for or all that the action is for. Retries are for FAILED unless said otherwise. */
function filtersFor(action: BulkAction, input: JobFilterOptions): (JobFilter & { status: JobStatus })[] {
  const { status, ...rest } = readJobFilter(input, `${action}Jobs() filter`);
  const allowed = STATUSES[action];
  if (status !== undefined && !allowed.includes(status)) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `${action}Jobs() is for jobs that are ${allowed.join(', ')}, got status '${status}'`,
    );
  }
  const statuses = status !== undefined ? [status] : action === 'retry' ? (['FAILED'] as const) : allowed;
  return statuses.map((one) => ({ ...rest, status: one }));
}

async function* chunksOf(store: Pick<Store, 'listJobs'>, filter: JobFilter): AsyncGenerator<string[]> {
  let after: Place | undefined;
  for (;;) {
    const jobs = await store.listJobs({ filter, after, limit: CHUNK });
    const last = jobs.at(-1);
    if (last === undefined) return;
    // Before they are changed: where they were is where the list goes on.
    after = placeOf(filter, last);
    yield jobs.map(({ _id }) => _id);
    if (jobs.length < CHUNK) return;
  }
}

async function changeOne(
  parts: BulkParts,
  action: BulkAction,
  id: string,
  status: JobStatus,
  reason: string | null,
): Promise<Change> {
  const { store, clock } = parts;
  switch (action) {
    case 'retry': {
      const answer = await store.retry(id, clock.now(), [status as FinishedStatus]);
      return answer.retried ? 'changed' : { refused: answer.status ?? 'notFound' };
    }
    case 'cancel': {
      const answer = await cancelJob(parts, id, reason);
      if (answer.answer === 'cancelled') return 'changed';
      if (answer.answer === 'requested') return 'requested';
      return { refused: answer.answer === 'alreadyFinished' ? answer.status : 'notFound' };
    }
    case 'hold':
    case 'release': {
      const answer = await (action === 'hold' ? store.hold(id, reason, clock.now()) : store.unhold(id));
      return answer.changed ? 'changed' : { refused: answer.status ?? 'notFound' };
    }
  }
}

function note(progress: BulkProgress, change: Change): void {
  if (typeof change === 'object') {
    progress.refused[change.refused] = (progress.refused[change.refused] ?? 0) + 1;
    return;
  }
  progress.changed++;
  if (change === 'requested') progress.requested++;
}

/** A few at a time. The first that fails ends it, once those under way have ended. */
async function forEach(ids: readonly string[], work: (id: string) => Promise<void>): Promise<void> {
  const queue = [...ids];
  let failed = false;
  const takeTurns = async (): Promise<void> => {
    for (let id = queue.shift(); id !== undefined && !failed; id = queue.shift()) {
      await work(id).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    }
  };
  const results = await Promise.allSettled(Array.from({ length: AT_ONCE }, takeTurns));
  const rejected = results.find((result) => result.status === 'rejected');
  if (rejected !== undefined) throw rejected.reason;
}
