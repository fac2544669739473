import type { Clock } from '../../domain/clock.js';
import { groupBy } from '../../domain/language.js';
import type { CollectionState, ServerFacts } from '../../store/schema/inspect.js';
import type { Store } from '../../store/store.js';
import { listWorkers, type WorkerView } from '../lists.js';

export interface CheckResult {
  level: 'ok' | 'warning' | 'error';
  finding: string;
  /** What to do; null if there is nothing to do. */
  advice: string | null;
}

/** Checks one thing that may be wrong with an installation. Never writes. */
export type Check = (facts: SharedFacts, deps: CheckDeps) => Promise<CheckResult>;

/** By name, in the order of the findings. */
export type Checks = Readonly<Record<string, Check>>;

export interface CheckDeps {
  store: Store;
  clock: Clock;
  /** This machine's own clock. */
  wallClock: Pick<Clock, 'now'>;
}

export function ok(finding: string): CheckResult {
  return { level: 'ok', finding, advice: null };
}

export function warning(finding: string, advice: string): CheckResult {
  return { level: 'warning', finding, advice };
}

export function error(finding: string, advice: string): CheckResult {
  return { level: 'error', finding, advice };
}

/** Clock errors up to this one are normal. */
export const MAX_CLOCK_ERROR_MS = 1000;
const MAX_NAMES_SHOWN = 5;

/** `a, b, c and more`. */
export function listNames(names: readonly string[]): string {
  const more = names.length > MAX_NAMES_SHOWN ? ' and more' : '';
  return `${names.slice(0, MAX_NAMES_SHOWN).join(', ')}${more}`;
}

/** Combinations of queue, task type and priority that are read one by one. */
const MAX_COMBINATIONS = 500;
/** Time limit of these reads: each of them costs a round trip. */
const MAX_READ_MS = 2000;

/** Facts that several checks need. Each is read once, when the first check needs it. */
export interface SharedFacts {
  server: () => Promise<ServerReading>;
  collections: () => Promise<CollectionState[]>;
  liveWorkers: () => Promise<WorkerView[]>;
  dueNow: () => Promise<DueNow>;
}

export interface ServerReading extends ServerFacts {
  /** This machine's time before the request and after the reply, in milliseconds. */
  requestedAt: number;
  repliedAt: number;
}

export interface DueNow {
  /** Pairs of queue and task type with due jobs, each pair once, and when the oldest of them became due. */
  pairs: { queue: string; taskType: string; dueAt: Date }[];
  /** False if there were more combinations than could be read. */
  isComplete: boolean;
}

export function loadFacts(deps: CheckDeps): SharedFacts {
  return {
    server: once(() => readServer(deps)),
    collections: once(() => deps.store.inspectCollections()),
    liveWorkers: once(async () => (await listWorkers(deps.store, deps.clock)).filter(({ isLive }) => isLive)),
    dueNow: once(() => readDue(deps)),
  };
}

async function readServer({ store, wallClock }: CheckDeps): Promise<ServerReading> {
  const requestedAt = wallClock.now().getTime();
  const facts = await store.inspectServer();
  return { ...facts, requestedAt, repliedAt: wallClock.now().getTime() };
}

async function readDue({ store, clock }: CheckDeps): Promise<DueNow> {
  const now = clock.now();
  const end = clock.monotonic() + MAX_READ_MS;
  const isTimeUp = (): boolean => clock.monotonic() > end;
  const { oldestDue, isComplete } = await store.findOldestDue({ now, max: MAX_COMBINATIONS, isTimeUp });
  const pairs = [...groupBy(oldestDue, ({ queue, taskType }) => JSON.stringify([queue, taskType])).values()];
  return {
    pairs: pairs.map((jobs) => ({
      ...{ queue: jobs[0].queue, taskType: jobs[0].taskType },
      dueAt: new Date(Math.min(...jobs.map(({ nextRunAt }) => nextRunAt.getTime()))),
    })),
    isComplete,
  };
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => (result ??= read());
}
