import type { HandlerRegistry } from '../../src/handlers/handler-registry.js';
import type { JobHandle } from '../../src/jobs/job-handle.js';
import { defineSchedule, defineTask, type ScheduleBuilder } from '../../src/schedules/definition/builder.js';
import { DefinitionRegistry } from '../../src/schedules/definition/definition-registry.js';
import { aRegistry } from './factories/handler-registry.js';

/** The definitions and handlers of one process, without a database. */
class DefinitionSetup {
  registry!: HandlerRegistry;
  definitions!: DefinitionRegistry;
  /** Every dispatch through a builder. */
  dispatched!: { name: unknown; payload: unknown; options: unknown }[];

  constructor() {
    this.open();
  }

  /** Starts again without any definition or handler. */
  open(): void {
    this.registry = aRegistry();
    this.dispatched = [];
    this.definitions = new DefinitionRegistry(this.registry, {
      timezone: 'UTC',
      symbols: {},
      environment: 'test',
      maxPayloadBytes: 1024,
      shellInheritEnv: [],
      clock: undefined,
    });
  }

  readonly schedule = <A>(name: string, handler: unknown): ScheduleBuilder<A> =>
    defineSchedule<A>(this.definitions, this.#dispatch, name, handler);

  readonly define = <A>(handler: unknown, payload: unknown): ScheduleBuilder<A> =>
    defineTask<A>(this.definitions, this.#dispatch, handler, payload);

  readonly names = (): string[] => this.definitions.all().map(({ name }) => name);

  readonly runnable = (): string[] => this.definitions.runnable().map(({ name }) => name);

  readonly #dispatch = async (name: unknown, payload: unknown, options: unknown): Promise<JobHandle> => {
    this.dispatched.push({ name, payload, options });
    return {} as JobHandle;
  };
}

/** Call inside a `describe`: a fresh setup for each of its tests. */
export function useDefinitions(): DefinitionSetup {
  const setup = new DefinitionSetup();
  beforeEach(() => setup.open());
  return setup;
}

export const nothing = (): void => undefined;
