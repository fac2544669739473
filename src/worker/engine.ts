import { randomUUID } from 'node:crypto';
import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job.js';
import type { ClockAnchor } from '../runtime/database-clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { within } from '../runtime/within.js';
import { afterClaim } from '../store/claim.js';
import type { Store } from '../store/store.js';
import { attemptOf } from './announce.js';
import { BufferSize } from './buffer-size.js';
import { CancelWatch } from './cancel-watch.js';
import type { ClaimedJob } from './claimed-job.js';
import { DoubtfulClaims } from './doubtful-claims.js';
import type { HandlerRegistry } from './handler-registry.js';
import { JobExecutor } from './job-executor.js';
import { JobPicker } from './job-picker.js';
import { JobRunner } from './job-runner.js';
import { LockManager } from './lock-manager.js';
import { NamedLocks } from './named-locks.js';
import { OnePass } from './one-pass.js';
import { PollLoop } from './poll-loop.js';
import { progressSaver } from './progress.js';
import type { Renewer } from './renewer.js';
import { Settler } from './settler.js';
import { StartMarks } from './start-marks.js';

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
  /** How many times longer than their interval polls may wait. */
  patience: () => number;
  /** There is room for more than there was to claim, after a time of plenty. */
  onSated: () => void;
}

/** A job may be claimed here just when somebody asks to cancel it: known to the database, not yet to this process. */
const SECOND_LOOK = 1000;

/** Everything that claims, runs and settles jobs in this process, and the order in which it starts and stops. */
export class WorkerEngine {
  readonly locks: LockManager;
  readonly namedLocks: NamedLocks;
  readonly #parts: EngineParts;
  readonly #runner: JobRunner;
  readonly #marks: StartMarks;
  readonly #settler: Settler;
  readonly #doubtful: DoubtfulClaims;
  readonly #cancelWatch: CancelWatch;
  readonly #pollLoop: PollLoop;
  readonly #onePass: OnePass;
  /** The end of the last claim in this process. */
  #turn: Promise<unknown> = Promise.resolve();
  #stopped = false;

  constructor(parts: EngineParts) {
    const { store, clock, events, random, options, registry, workerId, renewer, anchor, patience, onSated } =
      parts;
    const { concurrency, pollInterval, lockTimeout, queues, executionRetention, timeoutGrace } = options;
    const taskTypes = (): readonly string[] => registry.taskTypes;
    const bufferSize = new BufferSize();
    this.#parts = parts;
    this.locks = new LockManager({ clock, events, renewer, lockTimeout, anchor });
    this.namedLocks = new NamedLocks({ clock, events, store, locks: this.locks, workerId, lockTimeout });
    this.#doubtful = new DoubtfulClaims(clock, events, store);
    const picker = new JobPicker({
      store,
      clock,
      random,
      workerId,
      queues,
      taskTypes,
      leaseOf: (taskType) => registry.get(taskType)?.options.lease ?? lockTimeout,
      onRound: (round) => {
        events.emit('worker:claim', round);
      },
      onDoubt: (claim) => {
        this.#doubtful.add(claim);
      },
    });
    this.#marks = new StartMarks(clock, events, store);
    this.#settler = new Settler({ store, clock, events, workerId, executionRetention });
    this.#runner = new JobRunner({
      executor: new JobExecutor({
        registry,
        clock,
        random,
        options,
        saveProgress: progressSaver(store, clock, events),
        onHookFailed: (job, hook, error) => {
          events.emit('job:hookFailed', { ...attemptOf(job), hook, error });
        },
      }),
      locks: this.locks,
      marks: this.#marks,
      settler: this.#settler,
      clock,
      events,
      concurrency,
      timeoutGrace,
      settlesAlone: (taskType) => registry.get(taskType)?.options.settle === 'immediate',
      onUnwanted: (claimed) => {
        void this.#doubtful.giveBack(claimed);
      },
      onSlotFree: (duration) => {
        if (duration !== undefined) bufferSize.observeHandler(duration);
        this.#pollLoop.roomMade();
      },
      onSettled: (again) => {
        if (again) this.nudge();
        else this.#pollLoop.roomMade();
      },
    });
    const claiming = {
      picker,
      runner: this.#runner,
      giveBack: (claimed: readonly ClaimedJob[]) => this.#doubtful.giveBack(claimed),
      exclusively: <T>(work: () => Promise<T>) => this.#exclusively(work),
    };
    this.#onePass = new OnePass(claiming);
    this.#cancelWatch = new CancelWatch(clock, events, store, this.#runner, () => pollInterval * patience());
    this.#pollLoop = new PollLoop({
      clock,
      events,
      store,
      ...claiming,
      settler: this.#settler,
      bufferSize,
      queues,
      taskTypes,
      pollInterval,
      patience,
      onSated,
    });
  }

  /** Handlers at work. */
  get running(): number {
    return this.#runner.running;
  }

  /** Claimed jobs that wait for a slot. */
  get buffered(): number {
    return this.#runner.waiting;
  }

  /** Outcomes that are not written yet. */
  get unsettled(): number {
    return this.#settler.pending;
  }

  /** Nothing is begun any more. */
  get isStopped(): boolean {
    return this.#stopped;
  }

  /** There is more than enough to do. */
  get isBusy(): boolean {
    return this.#pollLoop.isBusy;
  }

  async start(): Promise<void> {
    await this.#open();
    this.#pollLoop.start();
  }

  /** There may be something to claim. */
  nudge(): void {
    this.#pollLoop.hint();
  }

  /** A job is due then. */
  dueAt(time: Date): void {
    this.#pollLoop.dueAt(time);
  }

  /** Somebody here wants the job cancelled, whoever runs it. */
  cancelled(jobId: string, reason: string | null): void {
    this.#runner.cancel(jobId, reason);
    this.#cancelWatch.wakeWithin(SECOND_LOOK);
  }

  /** Somebody wanted the job cancelled, maybe long ago: it may have ended and run again since. */
  heardOfCancel(jobId: string): void {
    if (this.#runner.has(jobId)) this.#cancelWatch.wake();
    else this.#cancelWatch.wakeWithin(SECOND_LOOK);
  }

  /** Anything may have happened: look for jobs and for requests to cancel. */
  lookAround(): void {
    this.#pollLoop.hint();
    this.#cancelWatch.wake();
  }

  /** Claims and executes up to `batch` due jobs; resolves after they settled, to how many there were: none once stopped. */
  async runPass(batch: number): Promise<number> {
    try {
      await this.#open();
    } catch (error) {
      if (this.#stopped) return 0;
      throw error;
    }
    return this.#onePass.run(batch);
  }

  /**
   * Runs a new job here and now: inserted RUNNING and locked, so that no other process takes it as well. Resolves when
   * its outcome is written, to false when the job was there already.
   */
  async runInPlace(job: JobDocument): Promise<boolean> {
    await this.#open();
    const { store, clock, registry, workerId, options } = this.#parts;
    const lease = registry.get(job.taskType)?.options.lease ?? options.lockTimeout;
    await this.#runner.slotFree();
    this.#assertGoing();
    if (this.#runner.allStuck) {
      throw new ChronosError(
        'WRONG_STATE',
        'handlers that ignore their signal hold every slot of this process',
      );
    }
    const sentAt = clock.monotonic();
    const now = clock.now();
    const grant = { token: randomUUID(), workerId, lockedUntil: new Date(now.getTime() + lease) };
    const claimed = { job: afterClaim('claim', job, grant, now), token: grant.token, lease, sentAt };
    try {
      if ((await store.enqueue(claimed.job)).duplicate) return false;
    } catch (error) {
      this.#doubtful.add({ token: grant.token, ids: [job._id], lease });
      throw error;
    }
    if (this.#stopped) await this.#doubtful.giveBack([claimed]);
    this.#assertGoing();
    this.#runner.accept([claimed]);
    await this.#runner.settled(new Set([job._id]));
    return true;
  }

  /**
   * Stops within `budget` milliseconds where handlers heed their signal: no new claims, the buffer given back,
   * handlers awaited, then aborted, outcomes written, and only then renewal ended. Returns what is left.
   */
  async stop(budget: number): Promise<JobDocument[]> {
    const { clock, options } = this.#parts;
    const end = clock.monotonic() + budget;
    const grace = Math.min(options.timeoutGrace, budget / 4);
    this.#stopped = true;
    this.#onePass.stop();
    await this.#within(end, Promise.all([this.#pollLoop.stop(), this.#turn]));
    await this.#within(end, this.#doubtful.giveBack(this.#runner.takeWaiting()));
    await this.#within(end - grace, this.#runner.idle());
    this.#runner.abortAll('shutdown', new ChronosError('WORKER_STOPPING', 'the worker stops'));
    await this.#within(end, this.#runner.idle());
    await this.#within(end, this.#turn);
    const left = this.#runner.abandon();
    this.#marks.abandon();
    this.#settler.abandon();
    await Promise.all([this.#settler.flushed(), this.#marks.flushed()]);
    await Promise.all([this.#cancelWatch.stop(), this.#doubtful.stop()]);
    await this.#doubtful.finish();
    await this.namedLocks.close();
    await this.locks.close();
    return left;
  }

  async #open(): Promise<void> {
    await this.locks.open();
    this.#assertGoing();
    this.#doubtful.start();
    this.#cancelWatch.start();
  }

  #assertGoing(): void {
    if (this.#stopped) throw new ChronosError('WRONG_STATE', 'the worker was stopped meanwhile');
  }

  async #within(end: number, work: Promise<unknown>): Promise<void> {
    const { clock } = this.#parts;
    await within(clock, end - clock.monotonic(), work);
  }

  async #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}
