import type { ResolvedOptions } from '../config/options.js';
import { VERSION } from '../config/version.js';
import { nextRuns, occurrencesOf } from '../domain/calendar/occurrences.js';
import type { Clock } from '../domain/clock.js';
import {
  canonicalJson,
  type ScheduleDefinition,
  type ScheduleDocument,
} from '../domain/schedule/schedule.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import { type DefinitionRegistry, isForEnvironment } from '../schedules/definition/definition-registry.js';
import type { Definition } from '../schedules/definition/definition.js';
import { toShownSchedule } from '../schedules/stored/stored-schedule-check.js';
import type { Store } from '../store/store.js';

const PREVIEWED_RUNS = 3;

/** A schedule that is defined in the code of this process. */
export interface DefinitionView extends ScheduleDefinition {
  name: string;
  /** Its handler: its own function, the handler of a task type, or a built-in one. */
  runs: { kind: string; label: string };
  dependsOn: readonly string[];
  /** This process has its handler, and it is defined for the environment of this process. */
  isServed: boolean;
  hasHandler: boolean;
  /** The stored schedule; null if no worker has registered it yet. */
  stored: Pick<ScheduleDocument, 'isActive' | 'paused' | 'disabledReason' | 'nextRunAt' | 'lastRunAt'> | null;
  /** The next few occurrences, even if it is not active. */
  nextRuns: Date[];
}

/** How a definition in code differs from the stored schedule of the same name. */
export interface ScheduleDifference {
  name: string;
  /**
   * `new`: not registered yet. `changed`: the next worker that starts updates it. `orphaned`: stored, but not defined in
   * this process. `taken`: a schedule that was added through the API has this name.
   */
  state: 'same' | 'new' | 'changed' | 'orphaned' | 'taken';
  changes: { field: string; code: unknown; stored: unknown }[];
}

export interface DefinitionDeps {
  store: Pick<Store, 'findSchedules' | 'findForeignDefinitions'>;
  clock: Clock;
  definitions: DefinitionRegistry;
  registry: HandlerRegistry;
  options: Pick<ResolvedOptions, 'environment'>;
}

export async function listDefinitions(deps: DefinitionDeps): Promise<DefinitionView[]> {
  const definitions = deps.definitions.all();
  const stored = await findStored(deps.store, definitions);
  return definitions.map((definition) => toDefinitionView(deps, definition, stored.get(definition.name)));
}

/** Definitions in the order of the code, then stored schedules that this process does not define. */
export async function diffSchedules(deps: DefinitionDeps): Promise<ScheduleDifference[]> {
  const definitions = deps.definitions.all();
  const stored = await findStored(deps.store, definitions);
  const names = definitions.map(({ name }) => name);
  const orphaned = await deps.store.findForeignDefinitions(names, { limitTime: true });
  return [
    ...definitions.map((definition) => diff(definition, stored.get(definition.name))),
    ...orphaned.sort().map((name) => ({ name, state: 'orphaned' as const, changes: [] })),
  ];
}

async function findStored(
  store: DefinitionDeps['store'],
  definitions: readonly Definition[],
): Promise<Map<string, ScheduleDocument>> {
  if (definitions.length === 0) return new Map();
  const names = definitions.map(({ name }) => name);
  const found = await store.findSchedules(names, { limitTime: true });
  return new Map(found.map((document) => [document._id, toShownSchedule(document).schedule]));
}

function toDefinitionView(
  { registry, options, clock }: DefinitionDeps,
  { name, task, schedule, dependsOn }: Definition,
  stored: ScheduleDocument | undefined,
): DefinitionView {
  const now = clock.now();
  const hasHandler = registry.get(name) !== undefined;
  return {
    name,
    runs: { kind: task.kind, label: task.label },
    ...schedule,
    dependsOn,
    hasHandler,
    isServed: hasHandler && isForEnvironment(schedule.environments, options.environment),
    stored: stored === undefined ? null : toStoredState(stored),
    nextRuns:
      schedule.rule === null
        ? []
        : nextRuns(occurrencesOf(schedule.rule, stored?.anchor ?? now), PREVIEWED_RUNS, now, Infinity),
  };
}

function toStoredState(stored: ScheduleDocument): DefinitionView['stored'] {
  const { isActive, paused, disabledReason, nextRunAt, lastRunAt } = stored;
  return { isActive, paused, disabledReason, nextRunAt, lastRunAt };
}

function diff(
  { name, schedule, hash }: Definition,
  stored: ScheduleDocument | undefined,
): ScheduleDifference {
  if (stored === undefined) return { name, state: 'new', changes: [] };
  if (stored.owner === 'api') return { name, state: 'taken', changes: [] };
  if (stored.hash === hash) return { name, state: 'same', changes: [] };
  const fields = Object.keys(schedule) as (keyof ScheduleDefinition)[];
  const changes = fields
    .filter((field) => canonicalJson(schedule[field]) !== canonicalJson(stored[field]))
    .map((field) => ({ field, code: schedule[field], stored: stored[field] }));
  return { name, state: 'changed', changes };
}

/** The settings of this process. Leaves out how it connects, which may contain a password. */
export interface ConfigurationView {
  version: string;
  workerId: string;
  /** Durations in milliseconds. */
  options: Omit<
    ResolvedOptions,
    'uri' | 'client' | 'connection' | 'clock' | 'logger' | 'taskHandlers' | 'workerId'
  >;
  /** Task types with a handler in this process. */
  taskTypes: string[];
}

export function toConfigurationView(
  options: ResolvedOptions,
  registry: HandlerRegistry,
  workerId: string,
): ConfigurationView {
  const { uri: _uri, client: _client, connection: _connection, ...rest } = options;
  const { clock: _clock, logger: _logger, taskHandlers: _handlers, workerId: _workerId, ...shown } = rest;
  return { version: VERSION, workerId, options: shown, taskTypes: registry.taskTypes.sort() };
}
