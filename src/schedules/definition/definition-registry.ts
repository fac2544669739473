import type { ResolvedOptions } from '../../config/options.js';
import { type ScheduleContext, SCHEDULE_SYMBOLS } from '../../config/rule-options.js';
import { didYouMean } from '../../domain/did-you-mean.js';
import { ChronosError, toError } from '../../domain/errors.js';
import type { HandlerRegistry } from '../../handlers/handler-registry.js';
import { systemClock } from '../../runtime/system-clock.js';
import { buildDefinition, type Definition, type DefinitionInput } from './definition.js';
import { findMissingHandler, handlerTaskType, registerHandler } from './handler-source.js';

export type DefinitionRegistryOptions = Pick<
  ResolvedOptions,
  'timezone' | 'symbols' | 'environment' | 'maxPayloadBytes' | 'shellInheritEnv' | 'clock'
>;

/** A ScheduleBuilder. Its class imports this file. */
interface Builder {
  freeze(): Definition;
}

/** The schedules that this process defines in code. */
export class DefinitionRegistry {
  readonly context: ScheduleContext;
  readonly #handlers: HandlerRegistry;
  readonly #options: DefinitionRegistryOptions;
  /** In the order of definition. A builder may be named later, or never. */
  readonly #names = new Map<Builder, string | undefined>();
  readonly #builders = new Map<string, Builder>();

  constructor(handlers: HandlerRegistry, options: DefinitionRegistryOptions) {
    this.#handlers = handlers;
    handlers.attachDefinitions(this);
    this.#options = options;
    const symbols = new Map(Object.entries({ ...SCHEDULE_SYMBOLS, ...options.symbols }));
    this.context = { timezone: options.timezone, symbols };
  }

  add(builder: Builder): void {
    this.#names.set(builder, undefined);
  }

  /** Adds or renames a builder and frees its previous name. Throws SCHEDULE_EXISTS if the name is taken. */
  setName(builder: Builder, name: string): void {
    if ((this.#builders.get(name) ?? builder) !== builder) {
      throw new ChronosError(
        'SCHEDULE_EXISTS',
        `there is already a schedule named '${name}': names must be unique`,
      );
    }
    this.#releaseName(builder);
    this.#names.set(builder, name);
    this.#builders.set(name, builder);
  }

  /** Completes a definition and registers it, and its own handler if it has one, in the handler registry. */
  build(input: DefinitionInput, builder: Builder): Definition {
    const { maxPayloadBytes } = this.#options;
    const definition = buildDefinition(input, { ...this.context, maxPayloadBytes, now: this.now() });
    const { name, task, schedule, options, hooks } = definition;
    const { payload, queue, priority, maxRunningTime, expiresIn } = schedule;
    const isServed = this.#isForThisEnvironment(definition);
    this.setName(builder, name);
    if (isServed) registerHandler(this.#handlers, name, task, this.#options);
    this.#handlers.define(name, {
      options,
      hooks,
      isServed,
      isSingleInstance: schedule.singleInstance,
      defaults: { payload, queue, priority, maxRunningTime, expiresIn },
      handledBy: handlerTaskType(task),
    });
    return definition;
  }

  /** Freezes the definition of this name, if there is one, so that a dispatch finds its handler and defaults. */
  freeze(name: string): void {
    this.#builders.get(name)?.freeze();
  }

  /** All definitions, frozen, in the order they were defined. */
  all(): Definition[] {
    return [...this.#names.keys()].map((builder) => builder.freeze());
  }

  /** All definitions, each after those it depends on. Throws DEPENDENCY_UNKNOWN or DEPENDENCY_CYCLE. */
  inOrder(): Definition[] {
    return executionOrder(this.all());
  }

  /** All definitions. Throws if one of them is enabled, applies to this environment and has no handler. */
  runnable(): Definition[] {
    const definitions = this.all();
    for (const definition of definitions) {
      const error = this.#findMissingHandler(definition);
      if (error !== undefined) throw error;
    }
    return definitions;
  }

  forThisEnvironment(): Definition[] {
    return this.runnable().filter((definition) => this.#isForThisEnvironment(definition));
  }

  /** Throws if a worker could not run one of the definitions. */
  assertValidForWorker(): void {
    for (const definition of this.runnable()) assertNamed(definition);
  }

  /**
   * Checks all definitions without throwing, for a process that is already running. An invalid definition is removed
   * and its name is free again. A definition without a handler stays: its handler may be registered later. `valid`
   * contains only definitions that apply to this environment.
   */
  validate(): { valid: Definition[]; rejected: { name: string; error: Error }[] } {
    const rejected: { name: string; error: Error }[] = [];
    const definitions = [...this.#names].flatMap(([builder, name = 'unnamed']) => {
      try {
        return assertNamed(builder.freeze());
      } catch (thrown) {
        rejected.push({ name, error: toError(thrown) });
        this.#releaseName(builder);
        this.#names.delete(builder);
        return [];
      }
    });
    const valid = definitions.filter((definition) => {
      const error = this.#findMissingHandler(definition);
      if (error !== undefined) rejected.push({ name: definition.name, error });
      return error === undefined && this.#isForThisEnvironment(definition);
    });
    return { valid, rejected };
  }

  now(): Date {
    return (this.#options.clock ?? systemClock).now();
  }

  #releaseName(builder: Builder): void {
    const name = this.#names.get(builder);
    if (name !== undefined) this.#builders.delete(name);
  }

  #isForThisEnvironment({ schedule }: Definition): boolean {
    return isForEnvironment(schedule.environments, this.#options.environment);
  }

  #findMissingHandler(definition: Definition): ChronosError | undefined {
    if (!definition.schedule.enabled || !this.#isForThisEnvironment(definition)) return undefined;
    return findMissingHandler(this.#handlers, definition.name, definition.task);
  }
}

export function isForEnvironment(environments: readonly string[], environment: string): boolean {
  return environments.length === 0 || environments.includes(environment);
}

/** The generated name of a closure contains a hash of its code and differs between builds: workers would not find it. */
function assertNamed(definition: Definition): Definition {
  if (!definition.isUnnamedClosure) return definition;
  throw new ChronosError(
    'INVALID_SCHEDULE',
    `the unnamed closure '${definition.name}' can only run inline, in a pass: name it with named(), so that workers find its code`,
  );
}

/** Topological sort: each definition comes after its dependencies; independent ones keep their order. */
export function executionOrder<T extends Pick<Definition, 'name' | 'dependsOn'>>(
  definitions: readonly T[],
): T[] {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  const ordered = new Set<T>();

  function visit(definition: T, path: readonly string[]): void {
    if (ordered.has(definition)) return;
    if (path.includes(definition.name)) {
      const cycle = [...path.slice(path.indexOf(definition.name)), definition.name];
      throw new ChronosError(
        'DEPENDENCY_CYCLE',
        `schedules depend on each other in a cycle: ${cycle.join(' → ')}`,
      );
    }
    for (const name of definition.dependsOn) {
      const dependency = byName.get(name);
      if (dependency === undefined) {
        throw new ChronosError(
          'DEPENDENCY_UNKNOWN',
          `schedule '${definition.name}' depends on '${name}', which is not defined${didYouMean(name, [...byName.keys()])}`,
        );
      }
      visit(dependency, [...path, definition.name]);
    }
    ordered.add(definition);
  }

  for (const definition of definitions) visit(definition, []);
  return [...ordered];
}
