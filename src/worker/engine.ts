import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job.js';
import { within } from '../runtime/within.js';
import { makeEngineParts, type EngineParts, type EngineRequest } from './engine-parts.js';
import type { LockManager } from './lock-manager.js';
import type { NamedLocks } from './named-locks.js';

/** A job may be claimed here just when somebody asks to cancel it: known to the database, not yet to this process. */
const SECOND_LOOK = 1000;

/** Everything that claims, runs and settles jobs in this process, as the rest sees it: what it is told, how it starts and stops. */
export class WorkerEngine {
  readonly #clock: Clock;
  readonly #timeoutGrace: number;
  readonly #parts: EngineParts;
  #stopped = false;

  constructor(request: EngineRequest) {
    this.#clock = request.clock;
    this.#timeoutGrace = request.options.timeoutGrace;
    this.#parts = makeEngineParts(request);
  }

  get locks(): LockManager {
    return this.#parts.locks;
  }

  get namedLocks(): NamedLocks {
    return this.#parts.namedLocks;
  }

  /** Handlers at work. */
  get running(): number {
    return this.#parts.runner.running;
  }

  /** Claimed jobs that wait for a slot. */
  get buffered(): number {
    return this.#parts.runner.waiting;
  }

  /** Outcomes that are not written yet. */
  get unsettled(): number {
    return this.#parts.settler.pending;
  }

  /** Nothing is begun any more. */
  get isStopped(): boolean {
    return this.#stopped;
  }

  /** There is more than enough to do. */
  get isBusy(): boolean {
    return this.#parts.pollLoop.isBusy;
  }

  async start(): Promise<void> {
    await this.#open();
    this.#parts.pollLoop.start();
  }

  /** There may be something to claim. */
  nudge(): void {
    this.#parts.pollLoop.hint();
  }

  /** A job is due then. */
  dueAt(time: Date): void {
    this.#parts.pollLoop.dueAt(time);
  }

  /** Somebody here wants the job cancelled, whoever runs it. */
  cancelled(jobId: string, reason: string | null): void {
    this.#parts.runner.cancel(jobId, reason);
    this.#parts.cancelWatch.wakeWithin(SECOND_LOOK);
  }

  /** Somebody wanted the job cancelled, maybe long ago: it may have ended and run again since. */
  heardOfCancel(jobId: string): void {
    if (this.#parts.runner.has(jobId)) this.#parts.cancelWatch.wake();
    else this.#parts.cancelWatch.wakeWithin(SECOND_LOOK);
  }

  /** Anything may have happened: look for jobs and for requests to cancel. */
  lookAround(): void {
    this.#parts.pollLoop.hint();
    this.#parts.cancelWatch.wake();
  }

  /** Claims and executes up to `batch` due jobs; resolves after they settled, to how many there were: none once stopped. */
  async runPass(batch: number): Promise<number> {
    try {
      await this.#open();
    } catch (error) {
      if (this.#stopped) return 0;
      throw error;
    }
    return this.#parts.onePass.run(batch);
  }

  /** Runs a new job here and now; resolves when its outcome is written, to false when the job was there already. */
  async runInPlace(job: JobDocument): Promise<boolean> {
    await this.#open();
    return this.#parts.inPlace.run(job);
  }

  /**
   * Stops within `budget` milliseconds where handlers heed their signal: no new claims, the buffer given back,
   * handlers awaited, then aborted, outcomes written, and only then renewal ended. Returns what is left.
   */
  async stop(budget: number): Promise<JobDocument[]> {
    const { locks, namedLocks, doubtful, marks, settler, runner, turns } = this.#parts;
    const { pollLoop, onePass, inPlace, cancelWatch } = this.#parts;
    const end = this.#clock.monotonic() + budget;
    const grace = Math.min(this.#timeoutGrace, budget / 4);
    this.#stopped = true;
    onePass.stop();
    inPlace.stop();
    await this.#within(end, Promise.all([pollLoop.stop(), turns.last]));
    await this.#within(end, doubtful.giveBack(runner.takeWaiting()));
    await this.#within(end - grace, runner.idle());
    runner.abortAll('shutdown', new ChronosError('WORKER_STOPPING', 'the worker stops'));
    await this.#within(end, runner.idle());
    await this.#within(end, turns.last);
    const left = runner.abandon();
    marks.abandon();
    settler.abandon();
    await Promise.all([settler.flushed(), marks.flushed()]);
    await Promise.all([cancelWatch.stop(), doubtful.stop()]);
    await doubtful.finish();
    await namedLocks.close();
    await locks.close();
    return left;
  }

  async #open(): Promise<void> {
    await this.#parts.locks.open();
    if (this.#stopped) throw new ChronosError('WRONG_STATE', 'the worker was stopped meanwhile');
    this.#parts.doubtful.start();
    this.#parts.cancelWatch.start();
  }

  async #within(end: number, work: Promise<unknown>): Promise<void> {
    await within(this.#clock, end - this.#clock.monotonic(), work);
  }
}
