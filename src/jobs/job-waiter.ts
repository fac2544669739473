import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { type AttemptKey, hasLastRow, lastRowIds } from '../domain/job/execution.js';
import { type FinishedJob, isFinished } from '../domain/job/job.js';
import { type JobState, jobState } from '../domain/job/state.js';
import { groupBy } from '../domain/language.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import { waitAtMost } from '../runtime/waiting.js';
import { isResultUnknown } from '../store/mongo-errors.js';
import type { Store } from '../store/store.js';
import type { ChangeListener } from '../worker/change-listener.js';

/** Jobs per query, and in the filter of the change stream. The others are polled. */
const MAX_BATCH = 1000;
/** A job that the stream does not report is read again after a quarter of the time it has been awaited, within these limits. */
const MIN_POLL_MS = 20;
const MAX_POLL_MS = 1000;
/** Jobs that are due for a poll within this time are read together. */
const MIN_ROUND_GAP_MS = 10;
/** The stream is opened again for jobs that have been awaited this long: most jobs end sooner, and polls find them. */
const STREAM_AFTER_MS = 250;
/** Opening the stream costs the server a few milliseconds, and every subscriber polls. */
const MIN_REOPEN_GAP_MS = 1000;
/** How long the stream of a process without a worker stays open after the last awaited job. */
const LINGER_MS = 10_000;
const IDLE_MS = 3_600_000;
/** How long to wait for the row of the last attempt: the worker may have died before it wrote it. */
const MAX_WAIT_FOR_ROW_MS = 2000;
/** The log may no longer have the attempts of a job that finished this long ago. */
const MAX_ROW_DELAY_MS = 60_000;
/** A wait whose time is over still gets the reply of its first read, for this long. */
const MAX_WAIT_FOR_READ_MS = 1000;
const MAX_RETRY_MS = 1000;

interface JobWaiterDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'findStates' | 'findFinished' | 'findAttemptKeys'>;
  changes: Pick<
    ChangeListener,
    'subscribe' | 'awaitedInStream' | 'setAwaited' | 'intervalMultiplier' | 'stop'
  >;
  options: Pick<ResolvedOptions, 'pollInterval'>;
}

/** A job that somebody in this process waits for. Times are monotonic. */
interface AwaitedJob {
  readonly since: number;
  readAt: number;
  waiters: number;
  /** As it was last read. */
  state: JobState | undefined;
  /** Finished, but the row of its last attempt is not there yet. */
  finished: { job: FinishedJob; since: number } | undefined;
  readonly firstRead: Deferred<void>;
  readonly ended: Deferred<FinishedJob>;
}

/**
 * Waits for jobs to finish, whichever process runs them. All jobs that may have finished are read with one query: those
 * that ended in this process, those that the change stream reports, and the others at growing intervals.
 */
export class JobWaiter extends PeriodicService {
  readonly name = 'await jobs';
  readonly #deps: JobWaiterDeps;
  readonly #jobs = new Map<string, AwaitedJob>();
  #unsubscribe: (() => void) | undefined;
  #idleSince = 0;
  #streamChangedAt = -Infinity;
  #isClosed = false;

  constructor(deps: JobWaiterDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    deps.changes.subscribe({
      onChanges: ({ ended }) => this.#readNow(ended),
      onMissedChanges: () => this.#readNow(this.#jobs.keys()),
    });
  }

  protected override get maxRetryDelay(): number {
    return MAX_RETRY_MS;
  }

  /** Resolves to the finished job. Rejects with WAIT_TIMEOUT, JOB_NOT_FOUND, or WRONG_STATE after stop(). */
  async wait(jobId: string, timeout: number): Promise<FinishedJob> {
    if (this.#isClosed) throw stoppedError(jobId);
    const awaited = this.#jobs.get(jobId) ?? this.#add(jobId);
    awaited.waiters++;
    this.#readNow([jobId]);
    const { ended, firstRead } = awaited;
    try {
      const inTime = await this.#within(timeout, ended.promise);
      if (inTime !== undefined) return inTime;
      if (awaited.state === undefined)
        await waitAtMost(this.clock, MAX_WAIT_FOR_READ_MS, Promise.race([ended.promise, firstRead.promise]));
      const job = ended.value ?? awaited.finished?.job;
      if (job !== undefined) return job;
      const state = awaited.state === undefined ? 'did not finish' : `is still ${awaited.state}`;
      throw new ChronosError('WAIT_TIMEOUT', `job '${jobId}' ${state} after ${timeout} ms`);
    } finally {
      awaited.waiters--;
      if (awaited.waiters === 0 && this.#jobs.get(jobId) === awaited) this.#remove(jobId);
    }
  }

  /** Waits that are in progress reject. */
  override async stop(): Promise<void> {
    this.#isClosed = true;
    for (const [jobId, { ended }] of this.#jobs) ended.reject(stoppedError(jobId));
    this.#jobs.clear();
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    await super.stop();
    await this.#deps.changes.stop();
  }

  async runOnce(): Promise<number> {
    if (this.#jobs.size === 0) return this.#rest();
    const now = this.clock.monotonic();
    const due = [...this.#jobs.keys()].filter((id) => (this.#jobs.get(id)?.readAt ?? Infinity) <= now);
    for (let start = 0; start < due.length; start += MAX_BATCH) {
      this.restartTimeLimit();
      await this.#read(due.slice(start, start + MAX_BATCH));
    }
    this.#updateStream();
    return this.#untilNextRead();
  }

  #add(jobId: string): AwaitedJob {
    const awaited: AwaitedJob = {
      since: this.clock.monotonic(),
      readAt: Infinity,
      waiters: 0,
      state: undefined,
      finished: undefined,
      firstRead: new Deferred(),
      ended: new Deferred(),
    };
    this.#jobs.set(jobId, awaited);
    this.#unsubscribe ??= this.#deps.events.onJobEnd((id) => this.#readNow([id]));
    this.start();
    return awaited;
  }

  #remove(jobId: string): void {
    this.#jobs.delete(jobId);
    this.#idleSince = this.clock.monotonic();
  }

  #readNow(ids: Iterable<string>): void {
    let isAwaited = false;
    for (const id of ids) {
      const awaited = this.#jobs.get(id);
      if (awaited === undefined) continue;
      awaited.readAt = 0;
      isAwaited = true;
    }
    if (isAwaited) this.wake();
  }

  async #within<T>(timeout: number, work: Promise<T>): Promise<T | undefined> {
    if (timeout === Infinity) return work;
    const done = new AbortController();
    try {
      return (await Promise.race([work, this.clock.sleep(timeout, done.signal)])) ?? undefined;
    } finally {
      done.abort();
    }
  }

  async #read(ids: readonly string[]): Promise<void> {
    for (const id of ids) this.#planNextRead(id);
    try {
      await this.#resolveFinished(ids);
    } catch (error) {
      // An outage does not affect the jobs: keep trying. The next round follows after a delay.
      if (isResultUnknown(error)) {
        this.#readNow(ids);
        throw error;
      }
      for (const id of ids) this.#end(id, ({ ended }) => ended.reject(error));
    }
  }

  /** Before the read: a change that is reported during the read makes it happen again. */
  #planNextRead(id: string): void {
    const awaited = this.#jobs.get(id);
    if (awaited === undefined) return;
    const { changes, options } = this.#deps;
    const now = this.clock.monotonic();
    const interval = changes.awaitedInStream.has(id)
      ? options.pollInterval * changes.intervalMultiplier
      : Math.min(Math.max(MIN_POLL_MS, (now - awaited.since) / 4), MAX_POLL_MS);
    awaited.readAt = now + interval;
  }

  async #resolveFinished(ids: readonly string[]): Promise<void> {
    const { store } = this.#deps;
    const states = await store.findStates(ids);
    const finishedIds = ids.filter((id) => isFinished(states.get(id)?.status ?? 'SCHEDULED'));
    if (finishedIds.length > 0) {
      const jobs = await store.findFinished(finishedIds);
      const rows = await store.findAttemptKeys(jobs.flatMap(lastRowIds));
      const rowsByJob = groupBy(rows, ({ jobId }) => jobId);
      for (const job of jobs) this.#resolve(job, rowsByJob.get(job._id) ?? []);
    }
    const now = this.clock.now();
    for (const id of ids) {
      const fields = states.get(id);
      if (fields === undefined) this.#end(id, ({ ended }) => ended.reject(notFoundError(id)));
      else this.#recordState(id, jobState(fields, now));
    }
  }

  #recordState(id: string, state: JobState): void {
    const awaited = this.#jobs.get(id);
    if (awaited === undefined) return;
    awaited.state = state;
    awaited.firstRead.resolve();
  }

  #resolve(job: FinishedJob, rows: readonly AttemptKey[]): void {
    const awaited = this.#jobs.get(job._id);
    if (awaited === undefined) return;
    const now = this.clock.monotonic();
    const since = awaited.finished?.since ?? now;
    const finishedFor = this.clock.now().getTime() - (job.finishedAt?.getTime() ?? 0);
    const isRowDue = finishedFor < MAX_ROW_DELAY_MS && now - since < MAX_WAIT_FOR_ROW_MS;
    if (hasLastRow(job, rows) || !isRowDue) {
      this.#end(job._id, ({ ended }) => ended.resolve(job));
      return;
    }
    awaited.finished = { job, since };
    awaited.readAt = now + MIN_POLL_MS;
  }

  #end(id: string, settle: (awaited: AwaitedJob) => void): void {
    const awaited = this.#jobs.get(id);
    if (awaited === undefined) return;
    this.#remove(id);
    settle(awaited);
  }

  /** Opens the stream again if it does not report a job that has been awaited for some time. */
  #updateStream(): void {
    const { changes } = this.#deps;
    const now = this.clock.monotonic();
    if (now - this.#streamChangedAt < MIN_REOPEN_GAP_MS) return;
    const reported = changes.awaitedInStream;
    // In the order in which the waits began.
    const ids = [...this.#jobs.keys()].slice(0, MAX_BATCH);
    const isMissing = (id: string): boolean =>
      !reported.has(id) && now - (this.#jobs.get(id)?.since ?? now) >= STREAM_AFTER_MS;
    if (!ids.some(isMissing)) return;
    this.#streamChangedAt = now;
    changes.setAwaited(new Set(ids));
  }

  #untilNextRead(): number {
    let next = Infinity;
    for (const { readAt } of this.#jobs.values()) next = Math.min(next, readAt);
    return this.#jobs.size === 0 ? LINGER_MS : Math.max(MIN_ROUND_GAP_MS, next - this.clock.monotonic());
  }

  /** Nobody waits. The stream stays open for a while, because the next wait often follows soon. */
  #rest(): number {
    const left = this.#idleSince + LINGER_MS - this.clock.monotonic();
    if (left > 0) return left;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#deps.changes.setAwaited(new Set());
    return IDLE_MS;
  }
}

function notFoundError(jobId: string): ChronosError {
  return new ChronosError(
    'JOB_NOT_FOUND',
    `job '${jobId}' does not exist: it was pruned or deleted, or there was never such a job`,
  );
}

function stoppedError(jobId: string): ChronosError {
  return new ChronosError(
    'WRONG_STATE',
    `the scheduler was stopped while it waited for job '${jobId}'. The job is not affected: wait again after start()`,
  );
}

/** A promise that is settled from outside. Nobody has to await it. */
class Deferred<T> {
  readonly promise: Promise<T>;
  value: T | undefined;
  reject: (error: unknown) => void = () => undefined;
  #resolve: (value: T) => void = () => undefined;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => undefined);
  }

  resolve(value: T): void {
    this.value = value;
    this.#resolve(value);
  }
}
