import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { averageWith, hangingAfter, MIN_HANGING_MS, QUEUE_HANGING_MS } from '../domain/job/hanging.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import type { Store } from '../store/store.js';
import type { WorkerEngine } from '../worker/engine.js';

const INTERVAL_MS = 30_000;

/** Besides `job:complete`, the events after which a handler of this process has ended and its outcome is stored. */
const END_EVENTS = ['job:failed', 'job:cancelled', 'job:skipped', 'job:snoozed', 'job:released'] as const;

interface HangMonitorDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'findUsualDurations' | 'findOverdueQueues' | 'findIdleQueues'>;
  options: Pick<ResolvedOptions, 'queues'>;
  registry: Pick<HandlerRegistry, 'taskTypes' | 'settingsFor'>;
  engine: Pick<WorkerEngine, 'runningTypes' | 'isDraining'>;
}

/**
 * Notices that work hangs long before its timeouts pass: handlers of a task type run, but none of them has ended for many
 * times the usual duration; or jobs of a queue have been due for minutes, but no process has finished one.
 */
export class HangMonitor extends PeriodicService {
  readonly name = 'find hanging work';
  readonly #deps: HangMonitorDeps;
  /** When (monotonic) a job of each task type last ended here. */
  readonly #lastEnd = new Map<string, number>();
  /** Average durations by task type: of this process, else of the execution log; undefined if neither has one. */
  readonly #usualDurations = new Map<string, number | undefined>();
  /** Reported task types and queues, and since when (monotonic) they hang. */
  readonly #hangingTypes = new Map<string, number>();
  readonly #hangingQueues = new Map<string, number>();
  /** Queues that seemed to hang in the last round. */
  #suspectQueues: ReadonlySet<string> = new Set();
  readonly #onEnd = (event: { taskType: string }): void => this.#recordEnd(event.taskType);
  readonly #onComplete = (event: { taskType: string; duration: number }): void =>
    this.#recordCompletion(event);

  constructor(deps: HangMonitorDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
  }

  override start(): void {
    for (const name of END_EVENTS) this.events.on(name, this.#onEnd);
    this.events.on('job:complete', this.#onComplete);
    super.start();
  }

  override async stop(): Promise<void> {
    for (const name of END_EVENTS) this.events.off(name, this.#onEnd);
    this.events.off('job:complete', this.#onComplete);
    await super.stop();
  }

  async runOnce(): Promise<number> {
    await this.#checkTypes();
    await this.#checkQueues();
    return INTERVAL_MS;
  }

  #recordEnd(taskType: string): void {
    this.#lastEnd.set(taskType, this.clock.monotonic());
  }

  #recordCompletion({ taskType, duration }: { taskType: string; duration: number }): void {
    this.#recordEnd(taskType);
    this.#usualDurations.set(taskType, averageWith(this.#usualDurations.get(taskType), duration));
  }

  async #checkTypes(): Promise<void> {
    const { registry, engine } = this.#deps;
    const now = this.clock.monotonic();
    // A sweep also ends jobs of other types.
    const known = new Set(registry.taskTypes);
    for (const taskType of this.#lastEnd.keys()) if (!known.has(taskType)) this.#lastEnd.delete(taskType);
    const idle = [...engine.runningTypes]
      .map(([taskType, { running, oldestStart }]) => ({
        ...{ taskType, running },
        since: Math.max(oldestStart, this.#lastEnd.get(taskType) ?? -Infinity),
      }))
      .filter(({ since }) => now - since >= MIN_HANGING_MS);
    for (const [taskType, since] of [...this.#hangingTypes]) {
      if (idle.some((type) => type.taskType === taskType && type.since === since)) continue;
      this.#hangingTypes.delete(taskType);
      this.events.emit('type:recovered', { taskType, hungFor: now - since });
    }
    await this.#readUsualDurations(idle.map(({ taskType }) => taskType));
    for (const { taskType, running, since } of idle) {
      const usual = this.#usualDurations.get(taskType);
      const limit = hangingAfter(usual, registry.settingsFor(taskType).timeout);
      if (this.#hangingTypes.has(taskType) || now - since < limit) continue;
      this.#hangingTypes.set(taskType, since);
      const usualDuration = usual ?? null;
      this.events.emit('type:hanging', { taskType, running, since: this.#dateOf(since), usualDuration });
    }
  }

  /** For task types of which this process has completed nothing: once per type. */
  async #readUsualDurations(taskTypes: readonly string[]): Promise<void> {
    const unknown = taskTypes.filter((taskType) => !this.#usualDurations.has(taskType));
    if (unknown.length === 0) return;
    const found = await this.#deps.store.findUsualDurations();
    for (const taskType of unknown)
      if (!this.#usualDurations.has(taskType)) this.#usualDurations.set(taskType, found.get(taskType));
  }

  async #checkQueues(): Promise<void> {
    const { store, options, registry, engine } = this.#deps;
    const { queues } = options;
    const before = new Date(this.clock.now().getTime() - QUEUE_HANGING_MS);
    const overdue = await store.findOverdueQueues({
      ...{ queues, taskTypes: registry.taskTypes, dueBefore: before },
    });
    const names = engine.isDraining ? [] : overdue.map(({ queue }) => queue);
    const idle = new Set(await store.findIdleQueues(names, before));
    const now = this.clock.monotonic();
    for (const [queue, since] of [...this.#hangingQueues]) {
      if (idle.has(queue)) continue;
      this.#hangingQueues.delete(queue);
      this.events.emit('queue:recovered', { queue, hungFor: now - since });
    }
    for (const { queue, dueAt } of overdue) {
      // In one round alone, the workers may just have started, or an outage may just be over.
      if (!idle.has(queue) || !this.#suspectQueues.has(queue) || this.#hangingQueues.has(queue)) continue;
      this.#hangingQueues.set(queue, now - QUEUE_HANGING_MS);
      this.events.emit('queue:hanging', { queue, dueAt });
    }
    this.#suspectQueues = idle;
  }

  #dateOf(monotonic: number): Date {
    return new Date(this.clock.now().getTime() - (this.clock.monotonic() - monotonic));
  }
}
