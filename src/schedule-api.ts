import type {
  PassOptions,
  PauseOptions,
  DaemonOptions,
  ScheduleQueryOptions,
} from './config/call-options.js';
import type { EventChannel } from './built-in/event-channel.js';
import type { Instant } from './domain/instant.js';
import { checkCommandName } from './domain/names.js';
import type { SkipDocument } from './domain/schedule.js';
import type { PassReport } from './run-once.js';
import type { ScheduleBuilder } from './schedules/builder.js';
import type { DaemonReport } from './schedules/daemon.js';
import type { Definition } from './schedules/definition.js';
import type { Definitions } from './schedules/definitions.js';
import type { NewSchedule } from './schedules/given-schedule.js';
import type { BackfillAnswer, TriggerAnswer } from './schedules/runs-on-demand.js';
import type { SchedulePatch } from './schedules/schedule-patch.js';
import type { StoredSchedules } from './schedules/stored-schedules.js';
import { COMMAND_PREFIX } from './schedules/task.js';
import type { Handler } from './worker/handler.js';
import type { HandlerRegistry } from './worker/handler-registry.js';

// Payloads are what the handlers take them for.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Anything = any;

/** The part of the Scheduler that is about recurring work. */
export abstract class ScheduleApi {
  /** Where the built-in handler `event` is heard. A bus of its own: it cannot forge an event of the scheduler. */
  abstract readonly channel: EventChannel;
  protected abstract readonly registry: HandlerRegistry;
  protected abstract readonly definitions: Definitions;
  protected abstract stored(): Promise<StoredSchedules>;

  /**
   * Defines a schedule, or something to dispatch by name, in code. The handler is a function, a class, the name of a
   * task type, or left out when one is registered under the same name.
   */
  schedule<A = Anything>(name: string, handler?: Handler<A> | string): ScheduleBuilder<A> {
    return this.definitions.schedule<A>(name, handler);
  }

  /** The same for a built-in handler (`command`, `shell`, `url`, `event`, `closure`) or a task type, named later or not at all. */
  define<A = Anything>(handler: Handler<A> | string, payload?: unknown): ScheduleBuilder<A> {
    return this.definitions.define<A>(handler, payload);
  }

  /** Makes a function known to `define('command', name)`; its task type is `command:<name>`. */
  registerCommand<A = Anything>(name: string, command: Handler<A>): this {
    checkCommandName(name);
    this.registry.register(`${COMMAND_PREFIX}${name}`, command);
    return this;
  }

  /** Every definition in code, frozen by looking at it. */
  getDefinitions(): Definition[] {
    return this.definitions.all();
  }

  /** The names of the definitions, each after those it depends on. */
  getExecutionOrder(): string[] {
    return this.definitions.inOrder().map(({ name }) => name);
  }

  /** Stores a schedule; every worker follows. Resolves to its id. */
  async addSchedule(schedule: NewSchedule): Promise<string> {
    return (await this.stored()).add(schedule);
  }

  /** Changes a stored schedule; false when there is none. A changed rule counts from now on. */
  async updateSchedule(id: string, patch: SchedulePatch): Promise<boolean> {
    return (await this.stored()).update(id, patch);
  }

  /** False when there was none. Jobs it has made stay. */
  async removeSchedule(id: string): Promise<boolean> {
    return (await this.stored()).remove(id);
  }

  async getSchedule(id: string): ReturnType<StoredSchedules['get']> {
    return (await this.stored()).get(id);
  }

  /** In the order of their ids, a page at a time. */
  async listSchedules(query?: ScheduleQueryOptions): ReturnType<StoredSchedules['list']> {
    return (await this.stored()).list(query);
  }

  /** The same, with where the next page begins. */
  async pageSchedules(query?: ScheduleQueryOptions): ReturnType<StoredSchedules['page']> {
    return (await this.stored()).page(query);
  }

  /** No more occurrences until it is resumed; also for schedules in code. False when there is none. */
  async pauseSchedule(id: string, options?: PauseOptions): Promise<boolean> {
    return (await this.stored()).pause(id, options);
  }

  /** Goes on from now; what was due meanwhile is recorded as skipped. */
  async resumeSchedule(id: string): Promise<boolean> {
    return (await this.stored()).resume(id);
  }

  /** Runs it once now, besides its occurrences, by the rules of its overlap policy. */
  async triggerSchedule(id: string): Promise<TriggerAnswer> {
    return (await this.stored()).onDemand.trigger(id);
  }

  /** Makes the jobs of past occurrences that have none, from one instant to another, both included. */
  async backfill(id: string, from: Instant, to: Instant): Promise<BackfillAnswer> {
    return (await this.stored()).onDemand.backfill(id, from, to);
  }

  /** Occurrences that did not become jobs, the last first. */
  async getSkips(id: string, limit?: number): Promise<SkipDocument[]> {
    return (await this.stored()).skips(id, limit);
  }

  /**
   * One pass, for system cron: definitions that are due run in place when they have no queue and are enqueued when they
   * have one, in the order of their dependencies; then up to `batch` due jobs are executed.
   */
  abstract runOnce(options?: PassOptions): Promise<PassReport>;

  /** A pass at every multiple of an interval, until `stop()`, SIGINT or SIGTERM, or too many overruns in a row. */
  abstract daemon(options?: DaemonOptions): Promise<DaemonReport>;
}
