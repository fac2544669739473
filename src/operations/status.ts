import type { Clock } from '../domain/clock.js';
import { JOB_STATUSES, type JobStatus } from '../domain/job.js';
import type { Count } from '../store/list-jobs.js';
import type { RecentOutcomes } from '../store/recent-outcomes.js';
import { MOST_COUNTED } from '../store/bounded.js';
import type { DueHead } from '../store/due-heads.js';
import type { Store } from '../store/store.js';
import { listWorkers, type WorkerView } from './workers.js';

/** Queues, task types and priorities that are looked at one by one. */
const MOST_HEADS = 1000;
/** Milliseconds that this and counting per queue may take: far from the database each look costs a round trip. */
const MOST_LOOKING = 2000;
/** Throughput is that of the last five minutes. */
const WINDOW = 300_000;
const MINUTE = 60_000;

/** Of what there was no time to count. */
const UNCOUNTED: Count = { count: 0, atLeast: true };

/** Outcomes after which an attempt's job does not come back by itself. */
const ENDS: readonly string[] = ['completed', 'failed', 'cancelled', 'skipped'];

export interface QueueView {
  queue: string;
  counts: Record<JobStatus, Count>;
  /** SCHEDULED jobs whose time has come. */
  due: Count;
  /** When the first of these became due, and for how many milliseconds it waits; null when there is none. */
  oldestDueAt: Date | null;
  oldestWaiting: number | null;
  /** Jobs that ended per minute, lately. */
  perMinute: number;
  /** Milliseconds until what is due now is done at that rate; null when nothing ended lately, or when there was no time to count. A lower bound where `due` is one. */
  drainIn: number | null;
  /** Live workers that serve it. */
  workers: number;
}

export interface Throughput {
  /** Attempts that ended in the last `window` milliseconds: five minutes, less when there were too many to count. */
  window: number;
  attempts: number;
  perMinute: number;
  byOutcome: Record<string, number>;
}

export interface StatusView {
  at: Date;
  /** All jobs there are, finished or not; past ten thousand of a status as far as the server knows without counting. */
  stored: number;
  totals: Record<JobStatus, Count>;
  due: Count;
  queues: QueueView[];
  throughput: Throughput;
  workers: WorkerView[];
  /** Of the live workers: handlers that run, and could run. */
  running: number;
  slots: number;
  /**
   * False when there are more queues, task types and priorities than there was time to look at: a queue may wait for longer
   * than it says, and have more jobs than the lower bound of 0 that stands where nothing was counted.
   */
  isComplete: boolean;
}

export interface StatusParts {
  store: Pick<
    Store,
    | ('countByQueue' | 'countDue' | 'countJobs' | 'countRecentOutcomes')
    | ('estimateJobs' | 'findDueHeads' | 'findWaitingQueues' | 'findWorkers')
  >;
  clock: Clock;
}

/** Everything at one glance. Reads at most ten thousand documents of each status, whatever there is. */
export async function readStatus({ store, clock }: StatusParts): Promise<StatusView> {
  const at = clock.now();
  const end = clock.monotonic() + MOST_LOOKING;
  const isOver = (): boolean => clock.monotonic() > end;
  const [{ heads, isComplete }, waiting, estimate, workers, recent, counted] = await Promise.all([
    store.findDueHeads({ now: at, most: MOST_HEADS, isOver }),
    store.findWaitingQueues(MOST_HEADS, isOver),
    store.estimateJobs(),
    listWorkers(store, clock),
    store.countRecentOutcomes(new Date(at.getTime() - WINDOW), MOST_COUNTED),
    countOthers(store),
  ]);
  const live = workers.filter(({ isLive }) => isLive);
  const names = new Set([
    ...heads.map(({ queue }) => queue),
    ...waiting.queues,
    ...live.flatMap(({ queues }) => queues),
    ...[...counted.values()].flatMap(({ byQueue }) => [...byQueue.keys()]),
  ]);
  const window = Math.max(1, at.getTime() - recent.since.getTime());
  const queues: QueueView[] = [];
  let isCounted = true;
  for (const queue of [...names].sort()) {
    isCounted &&= !isOver();
    const [scheduled, due] = isCounted
      ? await Promise.all([
          store.countJobs({ status: 'SCHEDULED', queue }, MOST_COUNTED),
          store.countDue(queue, at, MOST_COUNTED),
        ])
      : [UNCOUNTED, UNCOUNTED];
    const oldestDueAt = oldestDue(heads, queue);
    const perMinute = ended(recent, queue) / (window / MINUTE);
    queues.push({
      queue,
      counts: countsOf((status) =>
        status === 'SCHEDULED'
          ? scheduled
          : { count: counted.get(status)?.byQueue.get(queue) ?? 0, atLeast: isCut(counted, status) },
      ),
      due,
      oldestDueAt,
      oldestWaiting: oldestDueAt === null ? null : at.getTime() - oldestDueAt.getTime(),
      perMinute,
      drainIn: drainIn(due, perMinute),
      workers: live.filter((worker) => worker.queues.includes(queue)).length,
    });
  }
  const totals = countsOf((status) =>
    status === 'SCHEDULED' ? sum(queues.map(({ counts }) => counts.SCHEDULED)) : totalOf(counted, status),
  );
  return {
    at,
    stored: storedOf(estimate, Object.values(totals), waiting.isComplete && isCounted),
    totals,
    due: sum(queues.map(({ due }) => due)),
    queues,
    throughput: throughputOf(recent, window),
    workers,
    running: live.reduce((total, { running }) => total + running, 0),
    slots: live.reduce((total, { concurrency }) => total + concurrency, 0),
    isComplete: isComplete && waiting.isComplete && isCounted,
  };
}

type Unscheduled = Exclude<JobStatus, 'SCHEDULED'>;
type Counted = ReadonlyMap<JobStatus, { total: Count; byQueue: ReadonlyMap<string, number> }>;

async function countOthers(store: Pick<Store, 'countByQueue'>): Promise<Counted> {
  const statuses = JOB_STATUSES.filter((status): status is Unscheduled => status !== 'SCHEDULED');
  return new Map(
    await Promise.all(
      statuses.map(async (status) => [status, await store.countByQueue(status, MOST_COUNTED)] as const),
    ),
  );
}

/** Heads are the first of their queue, task type and priority, so that the first of the queue is among them. */
function oldestDue(heads: readonly DueHead[], queue: string): Date | null {
  const due = heads.filter((head) => head.queue === queue);
  return due.length === 0 ? null : new Date(Math.min(...due.map(({ nextRunAt }) => nextRunAt.getTime())));
}

function ended({ outcomes }: RecentOutcomes, queue: string): number {
  return outcomes
    .filter((group) => group.queue === queue && ENDS.includes(group.outcome))
    .reduce((total, { count }) => total + count, 0);
}

/** The server's own figure can be wrong for good once it was killed: it stands in only where not all was counted. */
function storedOf(estimate: number, totals: readonly Count[], isComplete: boolean): number {
  const { count, atLeast } = sum(totals);
  return atLeast || !isComplete ? Math.max(estimate, count) : count;
}

function drainIn({ count, atLeast }: Count, perMinute: number): number | null {
  if (count === 0) return atLeast ? null : 0;
  return perMinute === 0 ? null : (count / perMinute) * MINUTE;
}

function throughputOf({ outcomes }: RecentOutcomes, window: number): Throughput {
  const byOutcome: Record<string, number> = {};
  for (const { outcome, count } of outcomes) byOutcome[outcome] = (byOutcome[outcome] ?? 0) + count;
  const attempts = outcomes.reduce((total, { count }) => total + count, 0);
  return { window, attempts, perMinute: attempts / (window / MINUTE), byOutcome };
}

function countsOf(count: (status: JobStatus) => Count): Record<JobStatus, Count> {
  return Object.fromEntries(JOB_STATUSES.map((status) => [status, count(status)])) as Record<
    JobStatus,
    Count
  >;
}

function isCut(counted: Counted, status: JobStatus): boolean {
  return totalOf(counted, status).atLeast;
}

function totalOf(counted: Counted, status: JobStatus): Count {
  return counted.get(status)?.total ?? { count: 0, atLeast: false };
}

function sum(counts: readonly Count[]): Count {
  return {
    count: counts.reduce((total, { count }) => total + count, 0),
    atLeast: counts.some(({ atLeast }) => atLeast),
  };
}
