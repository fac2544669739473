import type { Clock } from '../domain/clock.js';
import { type JobState, STATE_NAMES } from '../domain/job/state.js';
import type { OldestDue } from '../store/jobs/due.js';
import type { RecentOutcomes } from '../store/jobs/executions.js';
import type { Count, CountedState } from '../store/jobs/counts.js';
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

/** The load of one queue. */
export interface QueueView {
  queue: string;
  counts: Record<JobState, Count>;
  /** When the oldest waiting job became due; null when none is waiting. */
  oldestDueAt: Date | null;
  /** How long the oldest waiting job has been waiting, in milliseconds; null when none is waiting. */
  oldestWaiting: number | null;
  /** Jobs finished per minute, over the last five minutes. */
  perMinute: number;
  /**
   * Milliseconds until the waiting jobs are done at that rate, a lower bound if their count is one. Null when no job
   * finished recently, or when there was no time to count.
   */
  drainIn: number | null;
  /** Live workers that serve this queue and are not draining. */
  workers: number;
}

/** How many attempts ended recently. */
export interface Throughput {
  /** Length of the window in milliseconds: five minutes, or less when there were too many attempts to count. */
  window: number;
  /** Attempts that ended within the window. */
  attempts: number;
  perMinute: number;
  byOutcome: Record<string, number>;
}

/** The whole system at one moment. */
export interface StatusView {
  at: Date;
  /** All stored jobs, finished or not. With more than ten thousand in one state, this is MongoDB's own estimate. */
  stored: number;
  totals: Record<JobState, Count>;
  queues: QueueView[];
  throughput: Throughput;
  workers: WorkerView[];
  /** Handlers that are running in live workers. */
  running: number;
  /** The sum of the concurrency of live workers; a draining worker has only the slots that are in use. */
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
    | ('countByQueue' | 'countDue' | 'countLater' | 'countRecentOutcomes')
    | ('estimateJobs' | 'findOldestDue' | 'findWaitingQueues' | 'findWorkers')
  >;
  clock: Clock;
}

/** Reads at most ten thousand documents of each state, however many are stored. */
export async function readStatus({ store, clock }: StatusDeps): Promise<StatusView> {
  const at = clock.now();
  const end = clock.monotonic() + MAX_READ_MS;
  const isTimeUp = (): boolean => clock.monotonic() > end;
  const [{ oldestDue, isComplete }, waiting, estimate, workers, recent, counted] = await Promise.all([
    store.findOldestDue({ now: at, max: MAX_COMBINATIONS, isTimeUp }),
    store.findWaitingQueues(MAX_COMBINATIONS, isTimeUp),
    store.estimateJobs(),
    listWorkers(store, clock),
    store.countRecentOutcomes(new Date(at.getTime() - THROUGHPUT_WINDOW_MS), MAX_COUNTED),
    countByState(store, at),
  ]);
  const live = workers.filter(({ isLive }) => isLive);
  const names = new Set([
    ...oldestDue.map(({ queue }) => queue),
    ...waiting.queues,
    ...live.flatMap(({ queues }) => queues),
    ...[...counted.values()].flatMap(({ byQueue }) => [...byQueue.keys()]),
  ]);
  const unclaimed = await countUnclaimed(store, [...names].sort(), at, isTimeUp);
  const window = Math.max(1, at.getTime() - recent.since.getTime());
  const queues = unclaimed.map(({ queue, waiting: due, later }): QueueView => {
    const oldestDueAt = findOldestDueAt(oldestDue, queue);
    const perMinute = countFinished(recent, queue) / (window / MINUTE_MS);
    const countOf = (state: CountedState): Count => ({
      count: counted.get(state)?.byQueue.get(queue) ?? 0,
      atLeast: counted.get(state)?.total.atLeast ?? true,
    });
    const delayed = { ...later, count: Math.max(0, later.count - countOf('retrying').count) };
    return {
      queue,
      counts: countsByState((state) =>
        state === 'waiting' ? due : state === 'delayed' ? delayed : countOf(state),
      ),
      oldestDueAt,
      oldestWaiting: oldestDueAt === null ? null : at.getTime() - oldestDueAt.getTime(),
      perMinute,
      drainIn: estimateDrain(due, perMinute),
      workers: live.filter(({ isDraining, queues: served }) => !isDraining && served.includes(queue)).length,
    };
  });
  const isCounted = waiting.isComplete && unclaimed.every(({ later }) => later !== UNCOUNTED);
  const totals = countsByState((state) =>
    state === 'waiting' || state === 'delayed'
      ? sum(queues.map(({ counts }) => counts[state]))
      : (counted.get(state)?.total ?? UNCOUNTED),
  );
  return {
    at,
    stored: totalStored(estimate, Object.values(totals), isCounted),
    totals,
    queues,
    throughput: toThroughput(recent, window),
    workers,
    running: live.reduce((total, { running }) => total + running, 0),
    slots: live.reduce(
      (total, { isDraining, running, concurrency }) => total + (isDraining ? running : concurrency),
      0,
    ),
    isComplete: isComplete && isCounted,
  };
}

type QueueCounts = Awaited<ReturnType<Store['countByQueue']>>;

/** Counts of every state except waiting and delayed. */
async function countByState(
  store: Pick<Store, 'countByQueue'>,
  now: Date,
): Promise<ReadonlyMap<CountedState, QueueCounts>> {
  const states = STATE_NAMES.filter((state) => state !== 'waiting' && state !== 'delayed');
  return new Map(
    await Promise.all(
      states.map(async (state) => [state, await store.countByQueue(state, MAX_COUNTED, now)] as const),
    ),
  );
}

/** Counts one queue after the other. When the time is up, the remaining ones are UNCOUNTED. */
async function countUnclaimed(
  store: Pick<Store, 'countDue' | 'countLater'>,
  queues: readonly string[],
  now: Date,
  isTimeUp: () => boolean,
): Promise<{ queue: string; waiting: Count; later: Count }[]> {
  const counts = queues.map((queue) => ({ queue, waiting: UNCOUNTED, later: UNCOUNTED }));
  for (const entry of counts) {
    if (isTimeUp()) break;
    [entry.waiting, entry.later] = await Promise.all([
      store.countDue(entry.queue, now, MAX_COUNTED),
      store.countLater(entry.queue, now, MAX_COUNTED),
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

function countsByState(count: (state: JobState) => Count): Record<JobState, Count> {
  return Object.fromEntries(STATE_NAMES.map((state) => [state, count(state)])) as Record<JobState, Count>;
}

function sum(counts: readonly Count[]): Count {
  return {
    count: counts.reduce((total, { count }) => total + count, 0),
    atLeast: counts.some(({ atLeast }) => atLeast),
  };
}
