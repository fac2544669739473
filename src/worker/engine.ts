import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job/job.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { OutageMonitor } from '../runtime/outage-monitor.js';
import { waitAtMost } from '../runtime/waiting.js';
import type { Store } from '../store/store.js';
import { CancellationPoller } from './cancellation-poller.js';
import type { ChangeListener } from './change-listener.js';
import { Claimer } from './claimer.js';
import { ProgressReporter } from './job-context.js';
import { JobExecutor } from './job-executor.js';
import { JobPicker } from './job-picker.js';
import { JobRunner } from './job-runner.js';
import { LockManager } from './locks/lock-manager.js';
import type { Renewer } from './locks/lock-renewer.js';
import { NamedLocks } from './locks/named-locks.js';
import { type BatchResult, PassRunner } from './pass-runner.js';
import { PollLoop } from './poll-loop.js';
import { Settler } from './settler.js';
import { StartedMarker } from './started-marker.js';
import { UncertainClaims } from './uncertain-claims.js';

export interface EngineDeps {
  store: Store;
  clock: Clock;
  events: EventBus;
  random: () => number;
  options: ResolvedOptions;
  registry: HandlerRegistry;
  workerId: string;
  renewer: Renewer;
  outages: OutageMonitor;
  changes: ChangeListener;
}

/** Claims, runs and settles jobs in this process. Constructs its parts top to bottom; nothing runs until start(). */
export class WorkerEngine {
  readonly namedLocks: NamedLocks;
  readonly #clock: Clock;
  readonly #registry: HandlerRegistry;
  readonly #timeoutGrace: number;
  readonly #locks: LockManager;
  readonly #uncertainClaims: UncertainClaims;
  readonly #settler: Settler;
  readonly #startedMarker: StartedMarker;
  readonly #runner: JobRunner;
  readonly #claimer: Claimer;
  readonly #pollLoop: PollLoop;
  readonly #passRunner: PassRunner;
  readonly #cancellationPoller: CancellationPoller;
  #unsubscribe: () => void = () => undefined;

  constructor(deps: EngineDeps) {
    const { store, clock, events, random, options, registry, workerId, renewer, outages, changes } = deps;
    const { lockTimeout, queues, executionRetention, timeoutGrace } = options;
    this.#clock = clock;
    this.#registry = registry;
    this.#timeoutGrace = timeoutGrace;

    const locks = new LockManager({ clock, events, renewer, lockTimeout, outages });
    this.namedLocks = new NamedLocks({ clock, events, store, locks, workerId, lockTimeout });
    const uncertainClaims = new UncertainClaims(clock, events, store);
    const picker = new JobPicker({
      ...{ store, clock, events, random, workerId, queues, registry, uncertainClaims },
    });
    const settler = new Settler({ store, clock, events, workerId, executionRetention, outages });
    const startedMarker = new StartedMarker(clock, events, store);
    const progress = new ProgressReporter(store, clock, events);
    const executor = new JobExecutor({ registry, clock, random, options, progress });
    const runner = new JobRunner({
      ...{ executor, settler, startedMarker, locks, uncertainClaims, registry, clock, events, options },
    });
    const claimer = new Claimer(picker, runner, uncertainClaims);
    this.#passRunner = new PassRunner({
      ...{ store, clock, workerId, registry, claimer, runner, uncertainClaims },
    });
    this.#pollLoop = new PollLoop({
      ...{ clock, events, store, claimer, runner, settler, uncertainClaims, changes, registry, options },
    });
    this.#cancellationPoller = new CancellationPoller({ clock, events, store, runner, changes, options });

    this.#locks = locks;
    this.#uncertainClaims = uncertainClaims;
    this.#settler = settler;
    this.#startedMarker = startedMarker;
    this.#runner = runner;
    this.#claimer = claimer;
  }

  /** Handlers that run. */
  get running(): number {
    return this.#runner.running;
  }

  /** Claimed jobs that wait for a slot. */
  get prefetched(): number {
    return this.#runner.prefetched;
  }

  /** Outcomes that are not stored yet. */
  get unsettled(): number {
    return this.#settler.pending;
  }

  get isStopped(): boolean {
    return this.#claimer.isClosed;
  }

  /** Starts lock renewal ahead of start(). */
  prepare(): Promise<void> {
    return this.#locks.open();
  }

  async start(): Promise<void> {
    await this.#open();
    this.#unsubscribe = this.#registry.onChange(() => {
      this.wake();
    });
    this.#pollLoop.start();
  }

  /** Jobs may be due. */
  wake(): void {
    this.#pollLoop.requestPoll();
  }

  /** Cancels the job if this process runs it. */
  cancelLocal(jobId: string, reason: string | null): void {
    this.#cancellationPoller.cancelLocal(jobId, reason);
  }

  /** Executes up to `batch` due jobs; resolves after they have settled. Executes none once stopped. */
  async runBatch(batch: number): Promise<BatchResult> {
    try {
      await this.#open();
    } catch (error) {
      if (this.isStopped) return { executed: 0, failed: 0 };
      throw error;
    }
    return this.#passRunner.runBatch(batch);
  }

  /** Runs a new job in this process now; resolves when its outcome is stored, to false if the job existed. */
  async runInline(job: JobDocument): Promise<boolean> {
    await this.#open();
    return this.#passRunner.runInline(job);
  }

  /**
   * Stops within `budget` milliseconds if handlers respect their signal: no new claims, prefetched jobs released,
   * handlers awaited, then aborted, outcomes written, and only then renewal ended. Returns the jobs that are left.
   */
  async stop(budget: number): Promise<JobDocument[]> {
    const end = this.#clock.monotonic() + budget;
    const grace = Math.min(this.#timeoutGrace, budget / 4);
    this.#unsubscribe();
    this.#claimer.close();
    await this.#waitUntil(end, Promise.all([this.#pollLoop.stop(), this.#claimer.whenIdle()]));
    await this.#waitUntil(end, this.#uncertainClaims.release(this.#runner.takePrefetched()));
    await this.#waitUntil(end - grace, this.#runner.whenIdle());
    this.#runner.abortAll('shutdown', new ChronosError('WORKER_STOPPING', 'the worker stops'));
    await this.#waitUntil(end, this.#runner.whenIdle());
    await this.#waitUntil(end, this.#claimer.whenIdle());
    const left = this.#runner.abandon();
    await Promise.all([this.#settler.close(), this.#startedMarker.close()]);
    await Promise.all([this.#cancellationPoller.stop(), this.#uncertainClaims.stop()]);
    await this.#uncertainClaims.finish();
    await this.namedLocks.close();
    await this.#locks.close();
    return left;
  }

  async #open(): Promise<void> {
    await this.#locks.open();
    if (this.isStopped) throw new ChronosError('WRONG_STATE', 'the worker was stopped meanwhile');
    this.#uncertainClaims.start();
    this.#cancellationPoller.start();
  }

  async #waitUntil(end: number, work: Promise<unknown>): Promise<void> {
    await waitAtMost(this.#clock, end - this.#clock.monotonic(), work);
  }
}
