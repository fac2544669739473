import type { Clock } from '../domain/clock.js';
import { JOB_STATUSES, type JobStatus } from '../domain/job/job.js';
import type { OldestDue } from '../store/jobs/due.js';
import type { RecentOutcomes } from '../store/jobs/executions.js';
import type { Count } from '../store/jobs/counts.js';
import { MAX_COUNTED } from '../store/query-limits.js';
import type { Store } from '../store/store.js';
import { listWorkers, type WorkerView } from './lists.js';

/** Combinations of queue, task type and priority that are read one by one. */
const MAX_COMBINATIONS = 1000;
/** Time limit of these reads and of the counts per queue: each of them costs a round trip. */
const MAX_READ_MS = 2000;
const THROUGHPUT_WINDOW_MS = 300_000;
const MINUTE_MS = 60_000;

/** The counts of a queue that there was no time left to count. */
const UNCOUNTED: Count = { count: 0, atLeast: true };

/** Outcomes that end the job. */
const TERMINAL_OUTCOMES: readonly string[] = ['completed', 'failed', 'cancelled', 'skipped'];

export interface QueueView {
  queue: string;
  counts: Record<JobStatus, Count>;
  /** SCHEDULED jobs that are due. */
  due: Count;
  /** When the oldest due job became due; null when none is due. */
  oldestDueAt: Date | null;
  /** How long the oldest due job has been waiting, in milliseconds; null when none is due. */
  oldestWaiting: number | null;
  /** Jobs finished per minute, over the last five minutes. */
  perMinute: number;
  /**
   * Milliseconds until the jobs that are due now are done at that rate, a lower bound if `due` is one. Null when no job
   * finished recently, or when there was no time to count.
   */
  drainIn: number | null;
  /** Live workers that serve this queue. */
  workers: number;
}

export interface Throughput {
  /** Length of the window in milliseconds: five minutes, or less when there were too many attempts to count. */
  window: number;
  /** Attempts that ended within the window. */
  attempts: number;
  perMinute: number;
  byOutcome: Record<string, number>;
}

export interface StatusView {
  at: Date;
  /** All stored jobs, finished or not. With more than ten thousand of one status, this is MongoDB's own estimate. */
  stored: number;
  totals: Record<JobStatus, Count>;
  due: Count;
  queues: QueueView[];
  throughput: Throughput;
  workers: WorkerView[];
  /** Handlers that are running in live workers. */
  running: number;
  /** The sum of the concurrency of live workers. */
  slots: number;
  /**
   * False when there were more queues, task types and priorities than could be read in time. Some queues may then be
   * missing, have an older job than shown, or be counted as "at least 0".
   */
  isComplete: boolean;
}

export interface StatusDeps {
  store: Pick<
    Store,
    | ('countByQueue' | 'countDue' | 'countJobs' | 'countRecentOutcomes')
    | ('estimateJobs' | 'findOldestDue' | 'findWaitingQueues' | 'findWorkers')
  >;
  clock: Clock;
}

/** Reads at most ten thousand documents of each status, however many are stored. */
export async function readStatus({ store, clock }: StatusDeps): Promise<StatusView> {
  const at = clock.now();
  const end = clock.monotonic() + MAX_READ_MS;
  const isTimeUp = (): boolean => clock.monotonic() > end;
  const [{ oldestDue, isComplete }, waiting, estimate, workers, recent, unscheduled] = await Promise.all([
    store.findOldestDue({ now: at, max: MAX_COMBINATIONS, isTimeUp }),
    store.findWaitingQueues(MAX_COMBINATIONS, isTimeUp),
    store.estimateJobs(),
    listWorkers(store, clock),
    store.countRecentOutcomes(new Date(at.getTime() - THROUGHPUT_WINDOW_MS), MAX_COUNTED),
    countUnscheduled(store),
  ]);
  const live = workers.filter(({ isLive }) => isLive);
  const names = new Set([
    ...oldestDue.map(({ queue }) => queue),
    ...waiting.queues,
    ...live.flatMap(({ queues }) => queues),
    ...[...unscheduled.values()].flatMap(({ byQueue }) => [...byQueue.keys()]),
  ]);
  const counted = await countScheduled(store, [...names].sort(), at, isTimeUp);
  const window = Math.max(1, at.getTime() - recent.since.getTime());
  const queues = counted.map(({ queue, scheduled, due }): QueueView => {
    const oldestDueAt = findOldestDueAt(oldestDue, queue);
    const perMinute = countFinished(recent, queue) / (window / MINUTE_MS);
    return {
      queue,
      counts: countsByStatus((status) => {
        const found = unscheduled.get(status);
        if (found === undefined) return scheduled;
        return { count: found.byQueue.get(queue) ?? 0, atLeast: found.total.atLeast };
      }),
      due,
      oldestDueAt,
      oldestWaiting: oldestDueAt === null ? null : at.getTime() - oldestDueAt.getTime(),
      perMinute,
      drainIn: estimateDrain(due, perMinute),
      workers: live.filter((worker) => worker.queues.includes(queue)).length,
    };
  });
  const isCounted = waiting.isComplete && counted.every(({ due }) => due !== UNCOUNTED);
  const totals = countsByStatus(
    (status) => unscheduled.get(status)?.total ?? sum(queues.map(({ counts }) => counts.SCHEDULED)),
  );
  return {
    at,
    stored: totalStored(estimate, Object.values(totals), isCounted),
    totals,
    due: sum(queues.map(({ due }) => due)),
    queues,
    throughput: toThroughput(recent, window),
    workers,
    running: live.reduce((total, { running }) => total + running, 0),
    slots: live.reduce((total, { concurrency }) => total + concurrency, 0),
    isComplete: isComplete && isCounted,
  };
}

type QueueCounts = Awaited<ReturnType<Store['countByQueue']>>;

/** Counts of every status except SCHEDULED. */
async function countUnscheduled(
  store: Pick<Store, 'countByQueue'>,
): Promise<ReadonlyMap<JobStatus, QueueCounts>> {
  const statuses = JOB_STATUSES.filter((status) => status !== 'SCHEDULED');
  return new Map(
    await Promise.all(
      statuses.map(async (status) => [status, await store.countByQueue(status, MAX_COUNTED)] as const),
    ),
  );
}

/** Counts one queue after the other. When the time is up, the remaining ones are UNCOUNTED. */
async function countScheduled(
  store: Pick<Store, 'countJobs' | 'countDue'>,
  queues: readonly string[],
  now: Date,
  isTimeUp: () => boolean,
): Promise<{ queue: string; scheduled: Count; due: Count }[]> {
  const counts = queues.map((queue) => ({ queue, scheduled: UNCOUNTED, due: UNCOUNTED }));
  for (const entry of counts) {
    if (isTimeUp()) break;
    [entry.scheduled, entry.due] = await Promise.all([
      store.countJobs({ status: 'SCHEDULED', queue: entry.queue }, MAX_COUNTED),
      store.countDue(entry.queue, now, MAX_COUNTED),
    ]);
  }
  return counts;
}

/** `oldestDue` has the oldest due job of each task type and priority of the queue. */
function findOldestDueAt(oldestDue: readonly OldestDue[], queue: string): Date | null {
  const due = oldestDue.filter((job) => job.queue === queue);
  return due.length === 0 ? null : new Date(Math.min(...due.map(({ nextRunAt }) => nextRunAt.getTime())));
}

function countFinished({ outcomes }: RecentOutcomes, queue: string): number {
  return outcomes
    .filter((group) => group.queue === queue && TERMINAL_OUTCOMES.includes(group.outcome))
    .reduce((total, { count }) => total + count, 0);
}

/** MongoDB's estimate can stay wrong after an unclean shutdown, so it is used only if not everything was counted. */
function totalStored(estimate: number, totals: readonly Count[], isComplete: boolean): number {
  const { count, atLeast } = sum(totals);
  return atLeast || !isComplete ? Math.max(estimate, count) : count;
}

function estimateDrain({ count, atLeast }: Count, perMinute: number): number | null {
  if (count === 0) return atLeast ? null : 0;
  return perMinute === 0 ? null : (count / perMinute) * MINUTE_MS;
}

function toThroughput({ outcomes }: RecentOutcomes, window: number): Throughput {
  const byOutcome: Record<string, number> = {};
  for (const { outcome, count } of outcomes) byOutcome[outcome] = (byOutcome[outcome] ?? 0) + count;
  const attempts = outcomes.reduce((total, { count }) => total + count, 0);
  return { window, attempts, perMinute: attempts / (window / MINUTE_MS), byOutcome };
}

function countsByStatus(count: (status: JobStatus) => Count): Record<JobStatus, Count> {
  return Object.fromEntries(JOB_STATUSES.map((status) => [status, count(status)])) as Record<
    JobStatus,
    Count
  >;
}

function sum(counts: readonly Count[]): Count {
  return {
    count: counts.reduce((total, { count }) => total + count, 0),
    atLeast: counts.some(({ atLeast }) => atLeast),
  };
}
