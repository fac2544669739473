import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError, toError } from '../domain/errors.js';
import { groupBy } from '../domain/group-by.js';
import type { JobDocument } from '../domain/job.js';
import { cutText } from '../domain/text.js';
import type { ClockAnchor } from '../runtime/database-clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Store } from '../store/store.js';
import { BufferSize } from './buffer-size.js';
import { CancelWatch } from './cancel-watch.js';
import { DoubtfulClaims } from './doubtful-claims.js';
import type { HandlerRegistry } from './handler-registry.js';
import { JobExecutor } from './job-executor.js';
import { JobPicker, type ClaimedJob } from './job-picker.js';
import { JobRunner } from './job-runner.js';
import { LockManager } from './lock-manager.js';
import { PollLoop } from './poll-loop.js';
import type { Renewer } from './renewer.js';
import { Settler } from './settler.js';

const LONGEST_NOTE = 1024;

export interface EngineParts {
  store: Store;
  clock: Clock;
  events: EventBus;
  random: () => number;
  options: ResolvedOptions;
  registry: HandlerRegistry;
  workerId: string;
  renewer: Renewer;
  anchor: () => ClockAnchor | undefined;
}

/** Everything that claims, runs and settles jobs in this process, and the order in which it starts and stops. */
export class WorkerEngine {
  readonly locks: LockManager;
  readonly #parts: EngineParts;
  readonly #picker: JobPicker;
  readonly #runner: JobRunner;
  readonly #settler: Settler;
  readonly #doubtful: DoubtfulClaims;
  readonly #cancelWatch: CancelWatch;
  readonly #pollLoop: PollLoop;
  #onSlotFree: (() => void)[] = [];

  constructor(parts: EngineParts) {
    const { store, clock, events, random, options, registry, workerId, renewer, anchor } = parts;
    const { concurrency, pollInterval, lockTimeout, queues, executionRetention, timeoutGrace } = options;
    const taskTypes = (): readonly string[] => registry.taskTypes;
    const bufferSize = new BufferSize();
    this.#parts = parts;
    this.locks = new LockManager({ clock, events, store, renewer, workerId, lockTimeout, anchor });
    this.#doubtful = new DoubtfulClaims(clock, events, store);
    this.#picker = new JobPicker({
      store,
      clock,
      random,
      workerId,
      queues,
      taskTypes,
      leaseOf: (taskType) => registry.get(taskType)?.options.lease ?? lockTimeout,
      onDoubt: (claim) => {
        this.#doubtful.add(claim);
      },
    });
    this.#settler = new Settler({ store, clock, events, workerId, executionRetention });
    this.#runner = new JobRunner({
      executor: new JobExecutor({
        registry,
        clock,
        random,
        options,
        saveProgress: (job, value, note) => this.#saveProgress(job, value, note),
      }),
      locks: this.locks,
      settler: this.#settler,
      clock,
      events,
      concurrency,
      timeoutGrace,
      onUnwanted: (claimed) => {
        for (const { token, job, lease } of claimed) this.#doubtful.add({ token, ids: [job._id], lease });
      },
      onSlotFree: (duration) => {
        if (duration !== undefined) bufferSize.observeHandler(duration);
        this.#pollLoop.roomMade();
        for (const resolve of this.#onSlotFree.splice(0)) resolve();
      },
      onSettled: (again) => {
        if (again) this.nudge();
        else this.#pollLoop.roomMade();
      },
    });
    // What the sweep recovers may be for this process.
    events.on('job:stalled', () => {
      this.nudge();
    });
    this.#cancelWatch = new CancelWatch(clock, events, store, this.#runner, pollInterval);
    this.#pollLoop = new PollLoop({
      clock,
      events,
      store,
      picker: this.#picker,
      runner: this.#runner,
      settler: this.#settler,
      bufferSize,
      queues,
      taskTypes,
      concurrency,
      pollInterval,
      giveBack: (claimed) => this.#giveBack(claimed),
    });
  }

  /** Handlers at work. */
  get running(): number {
    return this.#runner.running;
  }

  async start(): Promise<void> {
    await this.#open();
    this.#pollLoop.start();
  }

  /** There may be something to claim. */
  nudge(): void {
    this.#pollLoop.wake();
  }

  /** A person in this process cancelled the job: no need to wait for the watch. */
  cancelled(jobId: string, reason: string | null): void {
    this.#runner.cancel(jobId, reason);
  }

  /** Claims and executes up to `batch` due jobs; resolves after they settled, to how many there were. */
  async runPass(batch: number): Promise<number> {
    await this.#open();
    const ids = new Set<string>();
    let waited = false;
    while (ids.size < batch) {
      const slots = Math.min(this.#runner.freeSlots, batch - ids.size);
      if (slots === 0) {
        await new Promise<void>((resolve) => this.#onSlotFree.push(resolve));
        continue;
      }
      const request = {
        slots,
        buffer: 0,
        withoutSuspects: this.#runner.hasSuspect,
        exclude: this.#runner.zombies,
      };
      const claimed = await this.#picker.pick(request);
      if (claimed.length === 0) {
        if (waited || !request.withoutSuspects) break;
        // Suspects run one at a time: the next may be taken once this one is through.
        await this.#runner.settled(ids);
      }
      waited = claimed.length === 0;
      for (const { job } of claimed) ids.add(job._id);
      this.#runner.accept(claimed);
    }
    await this.#runner.settled(ids);
    return ids.size;
  }

  /**
   * Stops within `budget` milliseconds where handlers heed their signal: no new claims, the buffer given back,
   * handlers awaited, then aborted, outcomes written, and only then renewal ended. Returns what is left.
   */
  async stop(budget: number): Promise<JobDocument[]> {
    const { clock, options } = this.#parts;
    const end = clock.monotonic() + budget;
    const grace = Math.min(options.timeoutGrace, budget / 4);
    await this.#pollLoop.stop();
    await this.#within(end, this.#giveBack(this.#runner.takeWaiting()));
    await this.#within(end - grace, this.#runner.idle());
    this.#runner.abortAll('shutdown', new ChronosError('WRONG_STATE', 'the worker stops'));
    await this.#within(end, this.#runner.idle());
    const left = this.#runner.abandon();
    this.#settler.abandon();
    await this.#settler.flushed();
    await Promise.all([this.#cancelWatch.stop(), this.#doubtful.stop()]);
    await this.#doubtful.runOnce().catch(() => undefined);
    await this.locks.close();
    return left;
  }

  async #open(): Promise<void> {
    await this.locks.open();
    this.#doubtful.start();
    this.#cancelWatch.start();
  }

  /** Resolves when the work is done or the time has come, whichever is first. */
  async #within(end: number, work: Promise<unknown>): Promise<void> {
    const { clock } = this.#parts;
    const done = new AbortController();
    await Promise.race([work, clock.sleep(end - clock.monotonic(), done.signal)]);
    done.abort();
  }

  async #giveBack(claimed: readonly ClaimedJob[]): Promise<void> {
    const { store, clock, events } = this.#parts;
    for (const [token, jobs] of groupBy(claimed, (one) => one.token)) {
      const ids = jobs.map(({ job }) => job._id);
      try {
        await store.giveBack(token, ids, clock.now());
      } catch (error) {
        events.emit('worker:trouble', {
          operation: 'give back',
          error: toError(error),
          failures: 1,
          retryIn: 0,
        });
        this.#doubtful.add({ token, ids, lease: jobs[0].lease });
      }
    }
  }

  async #saveProgress(job: JobDocument, value: number, note: string | null): Promise<boolean> {
    const { store, clock, events } = this.#parts;
    if (!Number.isFinite(value)) {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `reportProgress() takes a finite number, got ${String(value)}`,
      );
    }
    const progress = {
      value,
      note: note === null ? null : cutText(String(note), LONGEST_NOTE),
      at: clock.now(),
    };
    const kept = await store.saveProgress(job._id, job.lockToken ?? '', progress);
    if (kept) events.emit('job:progress', { jobId: job._id, taskType: job.taskType, value, note });
    return kept;
  }
}
