import type { Clock } from '../../domain/clock.js';
import type { CollectionState, ServerFacts } from '../../store/inspect.js';
import type { Store } from '../../store/store.js';
import { listWorkers, type WorkerView } from '../workers.js';

/** Queues, task types and priorities that are looked at one by one. */
const MOST_HEADS = 500;
/** Milliseconds that may take. */
const MOST_LOOKING = 2000;

export interface CheckParts {
  store: Store;
  clock: Clock;
  /** What this machine takes for the time. */
  wallClock: Pick<Clock, 'now'>;
}

/** What several checks ask for. */
export interface SharedFacts {
  server: () => Promise<ServerReading>;
  collections: () => Promise<CollectionState[]>;
  liveWorkers: () => Promise<WorkerView[]>;
  dueNow: () => Promise<DueNow>;
}

export interface ServerReading extends ServerFacts {
  /** What this machine took for the time just before and after it was asked, in milliseconds. */
  askedAt: number;
  answeredAt: number;
}

export interface DueNow {
  /** The queues and task types with jobs that are due, each pair once. */
  pairs: { queue: string; taskType: string }[];
  /** False when there are more queues, task types and priorities than were looked at. */
  isComplete: boolean;
}

/** Each is read when the first check asks for it, and once: a failure is the same for all that ask. */
export function factsOf(parts: CheckParts): SharedFacts {
  return {
    server: once(() => readServer(parts)),
    collections: once(() => parts.store.inspectCollections()),
    liveWorkers: once(async () =>
      (await listWorkers(parts.store, parts.clock)).filter(({ isLive }) => isLive),
    ),
    dueNow: once(() => readDue(parts)),
  };
}

async function readServer({ store, wallClock }: CheckParts): Promise<ServerReading> {
  const askedAt = wallClock.now().getTime();
  const state = await store.inspectServer();
  return { ...state, askedAt, answeredAt: wallClock.now().getTime() };
}

async function readDue({ store, clock }: CheckParts): Promise<DueNow> {
  const now = clock.now();
  const end = clock.monotonic() + MOST_LOOKING;
  const isOver = (): boolean => clock.monotonic() > end;
  const { heads, isComplete } = await store.findDueHeads({ now, most: MOST_HEADS, isOver });
  const pairs = new Map(
    heads.map(({ queue, taskType }) => [JSON.stringify([queue, taskType]), { queue, taskType }]),
  );
  return { pairs: [...pairs.values()], isComplete };
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () => (reading ??= read());
}
