import type { Clock } from '../domain/clock.js';
import { nextRuns, occurrencesOf } from '../domain/occurrences.js';
import { canonicalJson, type ScheduleDefinition, type ScheduleDocument } from '../domain/schedule.js';
import type { Definition } from '../schedules/definition.js';
import { isMeantFor, type Definitions } from '../schedules/definitions.js';
import type { Store } from '../store/store.js';
import type { HandlerRegistry } from '../worker/handler-registry.js';

const PREVIEWED = 3;

/** A definition in code, as it is loaded here. */
export interface DefinitionView extends ScheduleDefinition {
  name: string;
  /** What it runs: its own handler, one of a task type, a built-in one. */
  runs: { kind: string; label: string };
  dependsOn: readonly string[];
  /** Meant for the environment of this process, and something is here to run it with. */
  isServed: boolean;
  hasHandler: boolean;
  /** As it is stored: null where no worker has registered it. */
  stored: Pick<ScheduleDocument, 'isActive' | 'paused' | 'disabledReason' | 'nextRunAt' | 'lastRunAt'> | null;
  /** The next few times, whether it is active or not. */
  nextRuns: Date[];
}

/** How a definition in code and the stored schedule of its name compare. */
export interface ScheduleDifference {
  name: string;
  /**
   * `new`: not registered yet. `changed`: the next worker that starts writes it. `orphaned`: stored by code that is not here.
   * `taken`: a schedule of the API has its name.
   */
  state: 'same' | 'new' | 'changed' | 'orphaned' | 'taken';
  changes: { field: string; code: unknown; stored: unknown }[];
}

export interface DefinitionParts {
  store: Pick<Store, 'findSchedules' | 'findForeignDefinitions'>;
  clock: Clock;
  definitions: Definitions;
  registry: HandlerRegistry;
  environment: string;
}

export async function listDefinitions(parts: DefinitionParts): Promise<DefinitionView[]> {
  const all = parts.definitions.all();
  const stored = await storedFor(parts.store, all);
  return all.map((definition) => definitionView(parts, definition, stored.get(definition.name)));
}

/** Those in code in their order, then what is stored and not in code. */
export async function diffSchedules(parts: DefinitionParts): Promise<ScheduleDifference[]> {
  const all = parts.definitions.all();
  const stored = await storedFor(parts.store, all);
  const foreign = await parts.store.findForeignDefinitions(
    all.map(({ name }) => name),
    { isPerson: true },
  );
  return [
    ...all.map((definition) => difference(definition, stored.get(definition.name))),
    ...foreign.sort().map((name): ScheduleDifference => ({ name, state: 'orphaned', changes: [] })),
  ];
}

async function storedFor(
  store: DefinitionParts['store'],
  definitions: readonly Definition[],
): Promise<Map<string, ScheduleDocument>> {
  if (definitions.length === 0) return new Map();
  const found = await store.findSchedules(
    definitions.map(({ name }) => name),
    { isPerson: true },
  );
  return new Map(found.map((schedule) => [schedule._id, schedule]));
}

function definitionView(
  { registry, environment, clock }: DefinitionParts,
  { name, task, schedule, dependsOn }: Definition,
  stored: ScheduleDocument | undefined,
): DefinitionView {
  const now = clock.now();
  const hasHandler = registry.get(name) !== undefined;
  const anchor = stored?.anchor ?? now;
  return {
    name,
    runs: { kind: task.kind, label: task.label },
    ...schedule,
    dependsOn,
    hasHandler,
    isServed: hasHandler && isMeantFor(schedule.environments, environment),
    stored: stored === undefined ? null : stateOf(stored),
    nextRuns:
      schedule.rule === null ? [] : nextRuns(occurrencesOf(schedule.rule, anchor), PREVIEWED, now, Infinity),
  };
}

function stateOf(stored: ScheduleDocument): DefinitionView['stored'] {
  const { isActive, paused, disabledReason, nextRunAt, lastRunAt } = stored;
  return { isActive, paused, disabledReason, nextRunAt, lastRunAt };
}

function difference(
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
