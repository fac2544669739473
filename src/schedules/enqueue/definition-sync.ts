import type { Clock } from '../../domain/clock.js';
import { ChronosError, toError } from '../../domain/errors.js';
import type { ScheduleDocument } from '../../domain/schedule/schedule.js';
import type { EventBus } from '../../runtime/event-bus.js';
import { retryOnConflict } from '../../runtime/retry.js';
import { isResultUnknown } from '../../store/mongo-errors.js';
import type { Store } from '../../store/store.js';
import type { DefinitionRegistry } from '../definition/definition-registry.js';
import type { Definition } from '../definition/definition.js';
import { applyDefinition, isCurrent, newSchedule } from '../stored/schedule-document.js';

export interface DefinitionSyncDeps {
  store: Pick<
    Store,
    'findSchedules' | 'insertSchedule' | 'changeSchedule' | 'findForeignDefinitions' | 'findLiveTaskTypes'
  >;
  clock: Clock;
  events: EventBus;
  definitions: DefinitionRegistry;
}

/** Stores the definitions in code. Writes only the fields of the definition, and only if they changed. */
export class DefinitionSync {
  readonly #deps: DefinitionSyncDeps;
  readonly #registered = new Set<string>();
  /** The last reported reason by definition: each reason is reported once. */
  readonly #rejections = new Map<string, string>();

  constructor(deps: DefinitionSyncDeps) {
    this.#deps = deps;
  }

  /** Names of the registered definitions. */
  get names(): string[] {
    return [...this.#registered];
  }

  isRegistered(name: string): boolean {
    return this.#registered.has(name);
  }

  /** Registers all definitions. Throws if one is invalid. */
  async registerAll(): Promise<void> {
    await this.#register(this.#deps.definitions.forThisEnvironment());
  }

  /** Registers new definitions. An invalid definition is reported and left out. */
  async registerNew(): Promise<void> {
    const { valid, rejected } = this.#deps.definitions.validate();
    for (const { name, error } of rejected) this.#reportRejection(name, error);
    for (const definition of valid) {
      try {
        await this.#register([definition]);
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

  #reportRejection(scheduleId: string, { message: reason }: Error): void {
    if (this.#rejections.get(scheduleId) === reason) return;
    this.#rejections.set(scheduleId, reason);
    this.#deps.events.emit('schedule:disabled', { scheduleId, reason });
  }

  async #register(definitions: readonly Definition[]): Promise<void> {
    const { store } = this.#deps;
    const unregistered = definitions.filter(({ name }) => !this.#registered.has(name));
    if (unregistered.length === 0) return;
    const stored = await store.findSchedules(unregistered.map(({ name }) => name));
    const byId = new Map(stored.map((schedule) => [schedule._id, schedule]));
    for (const definition of unregistered) {
      const { name } = definition;
      let known = byId.get(name);
      await retryOnConflict(`the schedule '${name}'`, async () => {
        if (await this.#write(definition, known)) return true;
        [known] = await store.findSchedules([name]);
        return undefined;
      });
      this.#registered.add(name);
    }
  }

  /** False if another process changed the schedule after `known` was read. */
  async #write(definition: Definition, known: ScheduleDocument | undefined): Promise<boolean> {
    const { store, clock } = this.#deps;
    const { name, schedule, hash } = definition;
    const now = clock.now();
    if (known === undefined) return store.insertSchedule(newSchedule(name, 'code', schedule, hash, now));
    if (known.owner !== 'code') {
      throw new ChronosError(
        'SCHEDULE_EXISTS',
        `there is already a stored schedule with the id '${name}': rename the definition, or remove the stored schedule`,
      );
    }
    return isCurrent(known, hash) || store.changeSchedule(known, applyDefinition(known, schedule, hash, now));
  }
}
