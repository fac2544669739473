import type { ResolvedOptions } from '../../config/options.js';
import { BASES, toRuleOptions } from '../../config/rule-options.js';
import { resolveSchedule, type ScheduleOptions } from '../../config/schedule-options.js';
import type { CronField } from '../../domain/calendar/cron.js';
import type { Clock } from '../../domain/clock.js';
import { ChronosError, toError } from '../../domain/errors.js';
import { assertTaskType } from '../../domain/identifiers.js';
import type { ScheduleDefinition, ScheduleDocument } from '../../domain/schedule/schedule.js';
import { validationError } from '../../domain/validation.js';
import type { HandlerRegistry } from '../../handlers/handler-registry.js';
import { assertMatchesSchema, checkedPayload } from '../../handlers/payload.js';
import type { AnyPayloads, TaskPayload } from '../../jobs/task-types.js';
import type { DefinitionRegistry } from '../definition/definition-registry.js';
import { assertHasOccurrences } from '../definition/definition.js';

/** The settings of a stored schedule, apart from what its jobs run. */
export interface ScheduleSettings extends ScheduleOptions {
  /** Default: a generated id. */
  id?: string;
  /** Default true; false stores it paused. */
  isActive?: boolean;
}

/** The input of `addSchedule()`: when it is due, and the task type and payload of its jobs. */
export type NewSchedule<M extends object = AnyPayloads> = ScheduleSettings & TaskPayload<M>;

/** The input of `upsertSchedule()`: the whole definition. A setting that is left out gets its default. */
export type ScheduleUpsert<M extends object = AnyPayloads> = ScheduleOptions &
  TaskPayload<M> & {
    /** Required: it tells which schedule this is when the program starts again. */
    id: string;
  };

/** The input of `updateSchedule()`; null removes a setting. */
export type SchedulePatch = { [K in keyof Omit<NewSchedule, 'id'>]?: NewSchedule[K] | null };

type ScheduleInput = Omit<NewSchedule, 'id' | 'isActive'>;

export interface ScheduleInputDeps {
  clock: Clock;
  registry: HandlerRegistry;
  definitions: Pick<DefinitionRegistry, 'context'>;
  options: Pick<ResolvedOptions, 'maxPayloadBytes'>;
}

interface ParseContext {
  /** The method that error messages name. */
  where: string;
  /** The start of `every` intervals. */
  anchor: Date;
  /** Errors that the caller found. They are reported together with the others. */
  errors?: Error[];
  /** Fields of `cron` that a constraint may replace. */
  overridable?: readonly CronField[];
}

/** Validates the whole input and reports all problems in one error. */
export async function parseScheduleInput(
  { definitions, clock, registry, options: { maxPayloadBytes } }: ScheduleInputDeps,
  input: ScheduleInput,
  { where, anchor, errors = [], overridable = [] }: ParseContext,
): Promise<ScheduleDefinition> {
  const {
    taskType,
    payload = null,
    ...options
  } = input as ScheduleOptions & {
    taskType: string;
    payload?: unknown;
  };
  attempt(errors, () => assertTaskType(taskType));
  const copy = attempt(errors, () => checkedPayload(`the payload of ${where}`, payload, maxPayloadBytes));
  const resolved = attempt(errors, () => resolveSchedule(options, definitions.context, where, overridable));
  if (resolved?.rule === null)
    errors.push(new ChronosError('INVALID_SCHEDULE', `${where} needs a rule: cron, fields, symbol or every`));
  if (errors.length > 0 || resolved === undefined) throw combineErrors(errors);
  assertHasOccurrences(where, resolved.rule, clock.now(), resolved.rule?.startsAt ?? anchor);
  const schema = registry.get(taskType)?.options.schema;
  if (schema !== undefined) await assertMatchesSchema(taskType, schema, copy);
  return { ...resolved, taskType, payload: copy };
}

/** Returns what `read` returns. If it throws, adds the error to `errors` and returns undefined. */
export function attempt<T>(errors: Error[], read: () => T): T | undefined {
  try {
    return read();
  } catch (thrown) {
    errors.push(toError(thrown));
    return undefined;
  }
}

/** One error that lists all of them. */
function combineErrors(errors: readonly Error[]): Error {
  const [only] = errors;
  if (errors.length === 1 && only !== undefined) return only;
  return validationError(
    'INVALID_SCHEDULE',
    errors.map(({ message }) => message),
  );
}

/** The settings of the schedule after the patch. A new base (cron, fields, symbol, every) replaces the old one. */
export function applyPatch(
  schedule: ScheduleDocument,
  patch: Omit<SchedulePatch, 'isActive'>,
): { input: ScheduleInput; overridable: readonly CronField[] } {
  const { taskType, payload, rule, queue, priority, retries, timeout, maxRunningTime, expiresIn } = schedule;
  const { misfire, overlap, jitter, maxRuns, enabled, environments, userId } = schedule;
  const before = {
    ...{ taskType, payload, queue, priority, retries, timeout, maxRunningTime, expiresIn },
    ...{ misfire, overlap, jitter, maxRuns, enabled, environments, userId },
    ...(rule !== null && toRuleOptions(rule)),
  };
  const hasNewBase = BASES.some((base) => patch[base] != null);
  const replaced = hasNewBase ? Object.fromEntries(BASES.map((base) => [base, null])) : {};
  const merged = Object.entries({ ...before, ...replaced, ...patch }).filter(([, value]) => value !== null);
  return {
    input: Object.fromEntries(merged) as unknown as ScheduleInput,
    overridable: hasNewBase ? [] : (rule?.overridable ?? []),
  };
}
