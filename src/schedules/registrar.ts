import type { Clock } from '../domain/clock.js';
import { ChronosError, toError } from '../domain/errors.js';
import type { ScheduleDocument } from '../domain/schedule.js';
import type { EventBus } from '../runtime/event-bus.js';
import { isUncertain } from '../store/faults.js';
import type { Store } from '../store/store.js';
import type { Definition } from './definition.js';
import type { Definitions } from './definitions.js';
import { changedSchedule, isCurrent, newSchedule } from './new-schedule.js';

export interface RegistrarParts {
  store: Pick<
    Store,
    'findSchedules' | 'insertSchedule' | 'changeSchedule' | 'findForeignDefinitions' | 'findLiveTaskTypes'
  >;
  clock: Clock;
  events: EventBus;
  definitions: Definitions;
}

/** Keeps the stored schedules true to the definitions in code: definition fields only, and only where they differ. */
export class Registrar {
  readonly #parts: RegistrarParts;
  readonly #registered = new Set<string>();
  /** Why a schedule was left out, as it was reported. */
  readonly #refusals = new Map<string, string>();

  constructor(parts: RegistrarParts) {
    this.#parts = parts;
  }

  /** The schedules this process has in code and has registered. */
  get names(): string[] {
    return [...this.#registered];
  }

  isRegistered(name: string): boolean {
    return this.#registered.has(name);
  }

  /** Registers everything; throws when a definition is no good. For the start. */
  async registerAll(): Promise<void> {
    await this.#register(this.#parts.definitions.here());
  }

  /** Registers what was defined since the last time. One that is no good is left out, and reported once. */
  async registerNew(): Promise<void> {
    const { definitions, events } = this.#parts;
    const refuse = (scheduleId: string, { message: reason }: Error): void => {
      if (this.#refusals.get(scheduleId) === reason) return;
      this.#refusals.set(scheduleId, reason);
      events.emit('schedule:disabled', { scheduleId, reason });
    };
    for (const definition of definitions.collect(refuse)) {
      if (this.#registered.has(definition.name)) continue;
      await this.#register([definition]).catch((error: unknown) => {
        if (isUncertain(error)) throw error;
        refuse(definition.name, toError(error));
      });
    }
  }

  /** Tells of schedules that came from code which no live worker has. */
  async reportOrphans(): Promise<void> {
    const { store, events, clock, definitions } = this.#parts;
    const foreign = await store.findForeignDefinitions(definitions.all().map(({ name }) => name));
    if (foreign.length === 0) return;
    const alive = new Set(await store.findLiveTaskTypes(clock.now()));
    for (const scheduleId of foreign)
      if (!alive.has(scheduleId)) events.emit('schedule:orphaned', { scheduleId });
  }

  async #register(definitions: readonly Definition[]): Promise<void> {
    const fresh = definitions.filter(({ name }) => !this.#registered.has(name));
    if (fresh.length === 0) return;
    const known = await this.#parts.store.findSchedules(fresh.map(({ name }) => name));
    const byId = new Map(known.map((schedule) => [schedule._id, schedule]));
    for (const definition of fresh) await this.#write(definition, byId.get(definition.name));
  }

  async #write(definition: Definition, known: ScheduleDocument | undefined): Promise<void> {
    const { store, clock } = this.#parts;
    const { name, schedule, hash } = definition;
    const now = clock.now();
    if (known === undefined) {
      if (await store.insertSchedule(newSchedule(name, 'code', schedule, hash, now)))
        this.#registered.add(name);
      else await this.#again(definition);
      return;
    }
    if (known.owner !== 'code') {
      throw new ChronosError(
        'SCHEDULE_EXISTS',
        `a stored schedule has the id '${name}' already: name the definition differently, or remove the stored one`,
      );
    }
    const isWritten =
      isCurrent(known, hash) ||
      (await store.changeSchedule(known, changedSchedule(known, schedule, hash, now)));
    if (isWritten) this.#registered.add(name);
    else await this.#again(definition);
  }

  /** Somebody wrote at the same moment: look again. */
  async #again(definition: Definition): Promise<void> {
    const [known] = await this.#parts.store.findSchedules([definition.name]);
    await this.#write(definition, known);
  }
}
