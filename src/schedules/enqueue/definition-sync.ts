import { DEFAULT_QUEUE, type ResolvedOptions } from '../../config/options.js';
import type { Clock } from '../../domain/clock.js';
import { ChronosError, toError } from '../../domain/errors.js';
import type { ScheduleDocument } from '../../domain/schedule/schedule.js';
import type { EventBus } from '../../runtime/event-bus.js';
import { retryOnConflict } from '../../runtime/retry.js';
import { isResultUnknown } from '../../store/mongo-errors.js';
import type { Store } from '../../store/store.js';
import type { DefinitionRegistry } from '../definition/definition-registry.js';
import type { Definition } from '../definition/definition.js';
import type { MalformedSchedules } from './malformed-schedules.js';
import { applyDefinition, isCurrent, newSchedule } from '../stored/schedule-document.js';

export interface DefinitionSyncDeps {
  store: Pick<
    Store,
    | ('findSchedules' | 'insertSchedule' | 'changeSchedule')
    | ('findForeignDefinitions' | 'findLiveTaskTypes' | 'findLiveCapabilities')
  >;
  clock: Clock;
  events: EventBus;
  definitions: DefinitionRegistry;
  options: Pick<ResolvedOptions, 'queues'>;
  malformed: MalformedSchedules;
}

/** What a new definition begins with. */
export interface RegisterOptions {
  /**
   * For a pass: a new definition that is due in the current minute is due now, because the next pass is a minute later.
   * A worker runs all the time, so there its first occurrence is the next one.
   */
  includeCurrentMinute?: boolean;
}

/** Stores the definitions in code. Writes only the fields of the definition, and only if they changed. */
export class DefinitionSync {
  readonly #deps: DefinitionSyncDeps;
  readonly #registered = new Map<string, Definition>();
  /** Reported as unserved. */
  readonly #unserved = new Set<string>();
  /** The last reported reason by definition: each reason is reported once. */
  readonly #rejections = new Map<string, string>();

  constructor(deps: DefinitionSyncDeps) {
    this.#deps = deps;
  }

  /** Names of the registered definitions. */
  get names(): string[] {
    return [...this.#registered.keys()];
  }

  isRegistered(name: string): boolean {
    return this.#registered.has(name);
  }

  /** Registers all definitions. Throws if one is invalid. */
  async registerAll(options: RegisterOptions = {}): Promise<void> {
    await this.#register(this.#deps.definitions.forThisEnvironment(), options);
  }

  /** Registers new definitions. An invalid definition is reported and left out. */
  async registerNew(options: RegisterOptions = {}): Promise<void> {
    const { valid, rejected } = this.#deps.definitions.validate();
    for (const { name, error } of rejected) this.#reportRejection(name, error);
    for (const definition of valid) {
      try {
        await this.#register([definition], options);
      } catch (error) {
        if (isResultUnknown(error)) throw error;
        this.#reportRejection(definition.name, toError(error));
      }
    }
  }

  /** Reports stored schedules that were defined in code but are defined neither here nor in a live worker now. */
  async reportOrphans(): Promise<void> {
    const { store, events, clock, definitions } = this.#deps;
    const foreign = await store.findForeignDefinitions(definitions.all().map(({ name }) => name));
    if (foreign.length === 0) return;
    const alive = new Set(await store.findLiveTaskTypes(clock.now()));
    for (const scheduleId of foreign)
      if (!alive.has(scheduleId)) events.emit('schedule:orphaned', { scheduleId });
  }

  /** Reports definitions whose queue no live worker serves, each once until it is served again. */
  async reportUnserved(): Promise<void> {
    const { store, events, clock, options } = this.#deps;
    // This process serves its own queues, and its heartbeat may be late.
    const elsewhere = [...this.#registered.values()]
      .filter(({ schedule }) => schedule.enabled)
      .map(({ name, schedule }) => ({ scheduleId: name, queue: schedule.queue ?? DEFAULT_QUEUE }))
      .filter(({ queue }) => !options.queues.includes(queue));
    if (elsewhere.length === 0) return;
    const live = await store.findLiveCapabilities(clock.now());
    for (const { scheduleId, queue } of elsewhere) {
      const isServed = live.some(
        ({ queues, taskTypes }) => queues.includes(queue) && taskTypes.includes(scheduleId),
      );
      if (isServed) this.#unserved.delete(scheduleId);
      else if (!this.#unserved.has(scheduleId)) {
        this.#unserved.add(scheduleId);
        events.emit('schedule:unserved', { scheduleId, queue });
      }
    }
  }

  #reportRejection(scheduleId: string, { message: reason }: Error): void {
    if (this.#rejections.get(scheduleId) === reason) return;
    this.#rejections.set(scheduleId, reason);
    this.#deps.events.emit('schedule:disabled', { scheduleId, reason });
  }

  async #register(definitions: readonly Definition[], options: RegisterOptions): Promise<void> {
    const { store, malformed } = this.#deps;
    const unregistered = definitions.filter(({ name }) => !this.#registered.has(name));
    if (unregistered.length === 0) return;
    const stored = await store.findSchedules(unregistered.map(({ name }) => name));
    const byId = new Map(stored.map((schedule) => [schedule._id, schedule]));
    for (const definition of unregistered) {
      const { name } = definition;
      let known = byId.get(name);
      // Left out until somebody corrects or removes the stored document: then the next round registers the definition.
      if (known !== undefined && (await malformed.disable(known))) continue;
      await retryOnConflict(`the schedule '${name}'`, async () => {
        if (await this.#write(definition, known, options)) return true;
        [known] = await store.findSchedules([name]);
        return undefined;
      });
      this.#registered.set(name, definition);
    }
  }

  /** False if another process changed the schedule after `known` was read. */
  async #write(
    definition: Definition,
    known: ScheduleDocument | undefined,
    options: RegisterOptions,
  ): Promise<boolean> {
    const { store, clock } = this.#deps;
    const { name, schedule, hash } = definition;
    const now = clock.now();
    if (known === undefined)
      return store.insertSchedule(newSchedule(name, 'code', schedule, hash, now, options));
    if (known.owner !== 'code') {
      throw new ChronosError(
        'SCHEDULE_EXISTS',
        `there is already a stored schedule with the id '${name}': rename the definition, or remove the stored schedule`,
      );
    }
    return isCurrent(known, hash) || store.changeSchedule(known, applyDefinition(known, schedule, hash, now));
  }
}
