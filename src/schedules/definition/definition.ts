import {
  type HandlerRetryOptions,
  type ResolvedHandlerOptions,
  resolveHandlerOptions,
} from '../../config/handler-options.js';
import type { ScheduleContext } from '../../config/rule-options.js';
import { resolveSchedule, type ScheduleOptions } from '../../config/schedule-options.js';
import type { CronField } from '../../domain/calendar/cron.js';
import { occurrencesOf } from '../../domain/calendar/occurrences.js';
import type { Duration } from '../../domain/duration.js';
import { ChronosError } from '../../domain/errors.js';
import { findNameError } from '../../domain/identifiers.js';
import { hashOf, type ScheduleDefinition } from '../../domain/schedule/schedule.js';
import type { HandlerHooks } from '../../handlers/hooks.js';
import { checkedPayload } from '../../handlers/payload.js';
import { type HandlerSource, handlerTaskType } from './handler-source.js';

/** The settings that a builder has collected. */
export interface DefinitionInput {
  name: string | undefined;
  readonly task: HandlerSource;
  payload: unknown;
  options: ScheduleOptions;
  /** Fields of `options.cron` that a constraint may replace. */
  overridable: readonly CronField[];
  /** `singleInstance()` was called: it applies to dispatched and triggered runs, too. */
  singleInstance: boolean;
  lease: Duration | undefined;
  /** `options.retries` together with the functions, which are not stored. */
  handlerRetries: HandlerRetryOptions | undefined;
  dependsOn: string[];
  readonly hooks: { [K in keyof HandlerHooks]: HandlerHooks[K][number][] };
}

/** A schedule defined in code, complete and frozen. Its name is also a task type, with hooks around its handler. */
export interface Definition {
  readonly name: string;
  readonly task: HandlerSource;
  readonly schedule: Readonly<ScheduleDefinition>;
  /** Equal definitions have equal hashes, in every process. */
  readonly hash: string;
  readonly options: ResolvedHandlerOptions;
  readonly hooks: HandlerHooks;
  readonly dependsOn: readonly string[];
  /** Its generated name contains a hash of its code, which differs between builds, so it can only run inline. */
  readonly isUnnamedClosure: boolean;
}

export interface DefinitionContext extends ScheduleContext {
  maxPayloadBytes: number;
  now: Date;
}

/** Checks the input as a whole. Throws INVALID_SCHEDULE, INVALID_PAYLOAD or SCHEDULE_NEVER_RUNS. */
export function buildDefinition(input: DefinitionInput, context: DefinitionContext): Definition {
  const { task } = input;
  const name = input.name ?? generateName(input);
  const where = `schedule '${name}'`;
  // A generated name starts with a label, such as the name of a function, that may not be a valid name.
  assertScheduleName(name, where);
  const isUnnamedClosure = input.name === undefined && task.kind === 'closure';
  if (isUnnamedClosure && input.options.queue !== undefined) {
    throw new ChronosError(
      'INVALID_SCHEDULE',
      'an unnamed closure cannot be queued: name it with named(), so that workers find its code',
    );
  }
  const schedule: ScheduleDefinition = {
    ...resolveSchedule(input.options, context, where, input.overridable),
    singleInstance: input.singleInstance,
    taskType: name,
    payload: checkedPayload(`the payload of ${where}`, input.payload ?? null, context.maxPayloadBytes),
  };
  if (schedule.singleInstance && schedule.overlap === 'allow') {
    throw new ChronosError(
      'INVALID_SCHEDULE',
      `${where}: singleInstance() and overlap('allow') contradict each other: call only one of them`,
    );
  }
  // A disabled definition is skipped before its rule is evaluated: a mistake in it must not stop the others.
  if (schedule.enabled) assertHasOccurrences(where, schedule.rule, context.now);
  const { handlerRetries: retries, lease } = input;
  const { timeout } = input.options;
  return Object.freeze({
    name,
    task,
    schedule: deepFreeze(schedule),
    hash: hashOf(schedule),
    options: deepFreeze(resolveHandlerOptions(name, { retries, timeout, lease })),
    hooks: deepFreeze(copyLists(input.hooks)),
    dependsOn: Object.freeze([...input.dependsOn]),
    isUnnamedClosure,
  });
}

export function assertScheduleName(name: unknown, where: string): void {
  const error = findNameError(name);
  if (error !== undefined)
    throw new ChronosError('INVALID_SCHEDULE', `${where}: the name of a schedule ${error}`);
}

/**
 * A rule without an occurrence within five years is a mistake. The start of an interval is known only when the schedule
 * is stored. Until then, this checks only whether its constraints can ever be met.
 */
export function assertHasOccurrences(
  where: string,
  rule: ScheduleDefinition['rule'],
  now: Date,
  anchor: Date | undefined = rule?.startsAt,
): void {
  if (rule === null) return;
  const { endsAt: _, ...withoutEnd } = rule;
  const { every, ...constrained } = withoutEnd;
  const searched =
    every === undefined || anchor !== undefined ? withoutEnd : { ...constrained, cron: '* * * * * *' };
  if (occurrencesOf(searched, anchor ?? now).next(now) !== null) return;
  throw new ChronosError(
    'SCHEDULE_NEVER_RUNS',
    `${where} never runs: ${JSON.stringify(withoutEnd)} has no occurrence within five years from ${now.toISOString()}`,
  );
}

/** True if a pass runs it inline instead of enqueuing a job. */
export function isInline({ schedule }: Definition): boolean {
  return schedule.queue === null;
}

function generateName({ task, payload }: DefinitionInput): string {
  const code = task.kind === 'closure' ? task.source : (handlerTaskType(task) ?? null);
  return `${task.label}-${hashOf([code, payload ?? null])}`;
}

/** Freezes plain objects and arrays, but not class instances such as ObjectIds. */
function deepFreeze<T>(value: T): T {
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value ?? 0) === Object.prototype;
  if (!isPlain) return value;
  for (const inner of Object.values(value as object)) deepFreeze(inner);
  return Object.freeze(value);
}

function copyLists(hooks: DefinitionInput['hooks']): HandlerHooks {
  const copies = Object.entries(hooks).map(([kind, list]) => [kind, [...list]]);
  return Object.fromEntries(copies) as HandlerHooks;
}
