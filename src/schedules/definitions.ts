import { systemClock } from '../runtime/system-clock.js';
import type { ScheduleContext } from '../config/rule-readers.js';
import { SYMBOLS } from '../config/symbols.js';
import type { ResolvedOptions } from '../config/options.js';
import type { Draft } from '../dispatch/draft.js';
import { ChronosError, toError } from '../domain/errors.js';
import { nameFault } from '../domain/names.js';
import type { HandlerRegistry } from '../worker/handler-registry.js';
import { ScheduleBuilder, type BuilderHost } from './builder.js';
import { buildDefinition, type Definition, type Said } from './definition.js';
import { executionOrder } from './execution-order.js';
import { handlerOf, registerTask, requireHandler, taskFor, taskOf, type Task } from './task.js';

export interface DefinitionsParts {
  registry: HandlerRegistry;
  options: Pick<ResolvedOptions, 'timezone' | 'symbols' | 'environment' | 'maxPayloadBytes' | 'clock'>;
  draft: () => Draft<string>;
  dispatch: BuilderHost['dispatch'];
}

/** The schedules that this process defines in code. */
export class Definitions {
  readonly context: ScheduleContext;
  readonly #parts: DefinitionsParts;
  readonly #builders: { freeze(): Definition }[] = [];
  readonly #names = new Map<string, object>();

  constructor(parts: DefinitionsParts) {
    this.#parts = parts;
    const { timezone, symbols } = parts.options;
    this.context = { timezone, symbols: new Map(Object.entries({ ...SYMBOLS, ...symbols })) };
  }

  /** A builder for `name`, which has to be free. */
  schedule<A>(name: string, handler: unknown): ScheduleBuilder<A> {
    const fault = nameFault(name);
    if (fault !== undefined) throw new ChronosError('INVALID_SCHEDULE', `the name of a schedule ${fault}`);
    return this.#add<A>(name, taskFor(name, handler), null);
  }

  /** A builder that may be named later. */
  define<A>(handler: unknown, given: unknown): ScheduleBuilder<A> {
    const { task, payload } = taskOf(handler, given);
    return this.#add<A>(undefined, task, payload);
  }

  /** Everything that was defined so far, frozen, in the order it was defined. */
  all(): Definition[] {
    return this.#builders.map((builder) => builder.freeze());
  }

  /** The same, each with something to run it with. */
  runnable(): Definition[] {
    const all = this.all();
    for (const definition of all) this.#requireHandler(definition);
    return all;
  }

  /** Those that are meant for this environment. */
  here(): Definition[] {
    const { environment } = this.#parts.options;
    return this.runnable().filter(({ schedule }) => isMeantFor(schedule.environments, environment));
  }

  /**
   * Those meant for this environment, where nobody is left to throw to. One that is no good is dropped and its name is
   * free again; one that has no handler yet is left out until it has.
   */
  collect(refuse: (name: string, error: Error) => void): Definition[] {
    const good: Definition[] = [];
    for (const builder of [...this.#builders]) {
      try {
        const definition = builder.freeze();
        assertNamed(definition);
        good.push(definition);
      } catch (thrown) {
        const [name] = [...this.#names].find(([, owner]) => owner === builder) ?? [];
        this.#builders.splice(this.#builders.indexOf(builder), 1);
        if (name !== undefined) this.#names.delete(name);
        refuse(name ?? 'unnamed', toError(thrown));
      }
    }
    return good.filter((definition) => {
      try {
        this.#requireHandler(definition);
        return isMeantFor(definition.schedule.environments, this.#parts.options.environment);
      } catch (thrown) {
        refuse(definition.name, toError(thrown));
        return false;
      }
    });
  }

  /** Freezes the definition of this name, if there is one, so that a dispatch by it finds its handler and defaults. */
  freeze(name: unknown): void {
    this.#builders.find((builder) => this.#names.get(String(name)) === builder)?.freeze();
  }

  /** Each after those it depends on, otherwise as defined. Throws DEPENDENCY_UNKNOWN or DEPENDENCY_CYCLE. */
  inOrder(): Definition[] {
    return executionOrder(this.all());
  }

  /** Everything, checked for a worker. */
  forWorker(): Definition[] {
    const all = this.runnable();
    for (const definition of all) assertNamed(definition);
    return all;
  }

  #add<A>(name: string | undefined, task: Task, payload: unknown): ScheduleBuilder<A> {
    const said: Said = {
      name: undefined,
      task,
      payload,
      options: {},
      loose: [],
      lease: undefined,
      dependsOn: [],
      around: { when: [], skip: [], before: [], onSuccess: [], onError: [], after: [] },
    };
    const builder = new ScheduleBuilder<A>(this.#host(), said);
    if (name !== undefined) {
      this.#claimName(name, builder);
      said.name = name;
    }
    this.#builders.push(builder);
    return builder;
  }

  #host(): BuilderHost {
    const { draft, dispatch } = this.#parts;
    return {
      context: this.context,
      now: () => this.#now(),
      claimName: (name, builder) => {
        this.#claimName(name, builder);
      },
      freeName: (name) => {
        this.#names.delete(name);
      },
      build: (said, builder) => this.#build(said, builder),
      draft,
      dispatch,
    };
  }

  #build(said: Said, builder: object): Definition {
    const { registry, options } = this.#parts;
    const { maxPayloadBytes, environment } = options;
    const definition = buildDefinition(said, { ...this.context, maxPayloadBytes, now: this.#now() });
    const { name, task, schedule, around } = definition;
    this.#claimName(name, builder);
    const { payload, queue, priority, maxRunningTime } = schedule;
    const isServed = isMeantFor(schedule.environments, environment);
    if (isServed) registerTask(registry, name, task);
    registry.define(name, {
      ...{ options: definition.options, around, isServed },
      defaults: { payload, queue, priority, maxRunningTime },
      handledBy: handlerOf(task),
    });
    return definition;
  }

  /** Where its jobs are meant to run, there must be something to run them with. */
  #requireHandler({ name, task, schedule }: Definition): void {
    const { registry, options } = this.#parts;
    if (isMeantFor(schedule.environments, options.environment)) requireHandler(registry, name, task);
  }

  #now(): Date {
    return (this.#parts.options.clock ?? systemClock).now();
  }

  #claimName(name: string, builder: object): void {
    const owner = this.#names.get(name);
    if (owner !== undefined && owner !== builder) {
      throw new ChronosError(
        'SCHEDULE_EXISTS',
        `there is a schedule '${name}' already: each needs a name of its own`,
      );
    }
    this.#names.set(name, builder);
  }
}

export function isMeantFor(environments: readonly string[], environment: string): boolean {
  return environments.length === 0 || environments.includes(environment);
}

/** What is named by its code alone is named differently by every build: workers would not find it. */
function assertNamed({ name, isUnnamedClosure }: Definition): void {
  if (!isUnnamedClosure) return;
  throw new ChronosError(
    'INVALID_SCHEDULE',
    `the unnamed closure '${name}' can only run in place, in a one-pass run: give it a name with named(), so that workers find its code`,
  );
}
