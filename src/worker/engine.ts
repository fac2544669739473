import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job/job.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { OutageMonitor } from '../runtime/outage-monitor.js';
import { systemClock } from '../runtime/system-clock.js';
import { waitAtMost, whenAborted, whenSettled } from '../runtime/waiting.js';
import type { Store } from '../store/store.js';
import { CancellationPoller } from './cancellation-poller.js';
import type { ChangeListener } from './change-listener.js';
import { Claimer } from './claimer.js';
import { InFlightJobs, type QueueSlots, type RunningType } from './in-flight-jobs.js';
import { ProgressReporter } from './job-context.js';
import type { InvalidJobs } from './invalid-jobs.js';
import { JobExecutor } from './job-executor.js';
import { JobPicker } from './job-picker.js';
import { JobRunner } from './job-runner.js';
import { LockManager } from './locks/lock-manager.js';
import type { Renewer } from './locks/lock-renewer.js';
import { NamedLocks } from './locks/named-locks.js';
import { type BatchResult, PassRunner } from './pass-runner.js';
import { PollLoop } from './poll-loop.js';
import { Settler } from './settler.js';
import { SingleInstances } from './single-instances.js';
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
  invalidJobs: InvalidJobs;
  changes: ChangeListener;
  usesMongos: boolean;
}

/** Constructs the parts top to bottom; each one gets the parts that it uses. */
function createParts(deps: EngineDeps) {
  const { clock, events, store } = deps;
  const { lockTimeout, queues } = deps.options;
  const locks = new LockManager({ ...deps, lockTimeout });
  const namedLocks = new NamedLocks({ ...deps, locks, lockTimeout });
  const uncertainClaims = new UncertainClaims(clock, events, store);
  const picker = new JobPicker({ ...deps, queues, uncertainClaims });
  const settler = new Settler(deps);
  const startedMarker = new StartedMarker(clock, events, store);
  const progress = new ProgressReporter(store, clock, events);
  const executor = new JobExecutor({ ...deps, progress });
  const inFlight = new InFlightJobs(deps.options.queueSettings);
  const runner = new JobRunner({
    ...deps,
    ...{ inFlight, executor, settler, startedMarker, locks, uncertainClaims },
  });
  const singleInstances = new SingleInstances({ ...deps, uncertainClaims });
  const claimer = new Claimer({ picker, runner, inFlight, uncertainClaims, singleInstances });
  const passRunner = new PassRunner({ ...deps, claimer, runner, uncertainClaims, singleInstances });
  const pollLoop = new PollLoop({ ...deps, claimer, runner, settler, uncertainClaims });
  singleInstances.onAdmitted(() => pollLoop.requestPoll());
  const cancellationPoller = new CancellationPoller({ ...deps, inFlight, runner });
  return {
    ...{ locks, namedLocks, uncertainClaims, settler, startedMarker, inFlight, runner, claimer },
    ...{ passRunner, pollLoop, cancellationPoller, singleInstances },
  };
}

/** Claims, runs and settles jobs in this process. Nothing runs until start(). */
export class WorkerEngine {
  readonly #deps: EngineDeps;
  readonly #parts: ReturnType<typeof createParts>;
  #unsubscribe: () => void = () => undefined;
  #draining: { readonly drained: Promise<boolean>; readonly undrained: AbortController } | undefined;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
    this.#parts = createParts(deps);
  }

  get namedLocks(): NamedLocks {
    return this.#parts.namedLocks;
  }

  /** Running handlers. */
  get running(): number {
    return this.#parts.runner.running;
  }

  /** Claimed jobs that wait for a slot. */
  get prefetched(): number {
    return this.#parts.runner.prefetched;
  }

  /** Queues whose slots are limited, with the slots that their jobs occupy, running or prefetched. */
  get queueSlots(): QueueSlots[] {
    return this.#parts.inFlight.queueSlots;
  }

  get runningTypes(): ReadonlyMap<string, RunningType> {
    return this.#parts.inFlight.runningTypes;
  }

  /** Outcomes that are not stored yet. */
  get unsettled(): number {
    return this.#parts.settler.pending;
  }

  /** drain() was called: nothing is claimed until undrain(). */
  get isDraining(): boolean {
    return this.#draining !== undefined;
  }

  get isStopped(): boolean {
    return this.#parts.claimer.isClosed;
  }

  /** Starts lock renewal ahead of start(). */
  prepare(): Promise<void> {
    return this.#parts.locks.open();
  }

  async start(): Promise<void> {
    await this.#open();
    const { pollLoop, singleInstances } = this.#parts;
    this.#unsubscribe = this.#deps.registry.onChange(() => {
      this.wake();
      singleInstances.wake();
    });
    pollLoop.start();
    singleInstances.start();
  }

  /** Polls soon: jobs may be due. */
  wake(): void {
    this.#parts.pollLoop.requestPoll();
  }

  /** A job ended in this process: another run of a single-instance schedule may start. */
  jobEnded(taskType: string): void {
    this.#parts.singleInstances.jobEnded(taskType);
  }

  /**
   * Claims nothing more and releases prefetched jobs. Resolves to true when nothing is running any more, to false if
   * undrain() is called before.
   */
  drain(): Promise<boolean> {
    if (this.#draining === undefined) {
      const undrained = new AbortController();
      const drained = this.#drain(undrained.signal);
      this.#draining = { drained, undrained };
      this.#deps.events.emit('worker:drain', { state: 'draining' });
    }
    return this.#draining.drained;
  }

  /** Claims jobs again. */
  undrain(): void {
    if (this.#draining === undefined) return;
    this.#draining.undrained.abort();
    this.#draining = undefined;
    this.#parts.claimer.resume();
    this.#deps.events.emit('worker:drain', { state: 'undrained' });
    this.wake();
  }

  /** Cancels the job if this process runs it. */
  cancelLocal(jobId: string, reason: string | null): void {
    this.#parts.cancellationPoller.cancelLocal(jobId, reason);
  }

  /** Executes up to `batch` due jobs; resolves after they have settled. Executes none after stop(). */
  async runBatch(batch: number): Promise<BatchResult> {
    try {
      await this.#open();
    } catch (error) {
      if (this.isStopped) return { executed: 0, failed: 0 };
      throw error;
    }
    return this.#parts.passRunner.runBatch(batch);
  }

  /** Runs a new job in this process now. Resolves when its outcome is stored; to false if the job already existed. */
  async runInline(job: JobDocument): Promise<boolean> {
    await this.#open();
    return this.#parts.passRunner.runInline(job);
  }

  /**
   * Ends the work within `budget` milliseconds, of which it leaves `reserve` for close(). The order matters: no new
   * claims, release prefetched jobs, wait for handlers and their outcomes, abort the handlers, wait for them.
   */
  async stop(budget: number, reserve: number): Promise<void> {
    const { claimer, runner, uncertainClaims, pollLoop } = this.#parts;
    const { clock, options } = this.#deps;
    const end = clock.monotonic() + budget;
    const grace = Math.min(options.timeoutGrace, budget / 4);
    const waitUntil = (time: number, work: Promise<unknown>): Promise<void> =>
      waitAtMost(clock, time - clock.monotonic(), work);

    this.#unsubscribe();
    claimer.close();
    await waitUntil(end - grace, Promise.all([pollLoop.stop(), claimer.whenIdle()]));
    await waitUntil(end - grace, uncertainClaims.release(runner.takePrefetched()));
    await waitUntil(end - grace, runner.whenIdle());
    runner.abortAll('shutdown', new ChronosError('WORKER_STOPPING', 'the worker is stopping'));
    await waitUntil(end - reserve, runner.whenIdle());
    await waitUntil(end - reserve, claimer.whenIdle());
  }

  /**
   * Tries once more to write what is left, and ends renewal last. What is not written within `ms` milliseconds of real
   * time may still be written later or not: the locks of those jobs expire. Returns these jobs, and those whose handlers
   * have not ended.
   */
  async close(ms: number): Promise<Pick<JobDocument, '_id' | 'taskType'>[]> {
    const { runner, settler, startedMarker, uncertainClaims, namedLocks, locks, ...parts } = this.#parts;
    const end = systemClock.monotonic() + ms;
    const timeLeft = (): number => Math.max(0, end - systemClock.monotonic());
    const inTime = (work: Promise<unknown>): Promise<void> => whenSettled(timeLeft(), work);

    const unfinished = runner.abandon();
    await inTime(Promise.all([settler.close(), startedMarker.close()]));
    const left = unfinished.filter(({ outcome, state }) => outcome === undefined || state !== 'ended');
    await inTime(
      Promise.all([parts.cancellationPoller.stop(), parts.singleInstances.stop(), uncertainClaims.stop()]),
    );
    await inTime(uncertainClaims.finish());
    const unreleased = uncertainClaims.unreleased;
    await inTime(namedLocks.close());
    await locks.close(timeLeft());
    return [...left.map(({ job }) => job), ...unreleased];
  }

  async #drain(undrained: AbortSignal): Promise<boolean> {
    const { claimer, runner, uncertainClaims } = this.#parts;
    claimer.pause();
    await claimer.whenIdle();
    if (!undrained.aborted) await uncertainClaims.release(runner.takePrefetched());
    await Promise.race([runner.whenIdle(), whenAborted(undrained)]);
    if (undrained.aborted) return false;
    if (!this.isStopped) this.#deps.events.emit('worker:drain', { state: 'drained' });
    // A handler that ignores its signal may still be running after stop().
    return runner.running === 0;
  }

  async #open(): Promise<void> {
    const { locks, uncertainClaims, cancellationPoller } = this.#parts;
    await locks.open();
    if (this.isStopped) throw new ChronosError('WRONG_STATE', 'the worker was stopped during this call');
    uncertainClaims.start();
    cancellationPoller.start();
  }
}
