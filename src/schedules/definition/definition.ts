import { type ResolvedHandlerOptions, resolveHandlerOptions } from '../../config/handler-options.js';
import type { ScheduleContext } from '../../config/rule-options.js';
import { resolveSchedule, type ScheduleOptions } from '../../config/schedule-options.js';
import type { CronField } from '../../domain/calendar/cron.js';
import { occurrencesOf } from '../../domain/calendar/occurrences.js';
import type { Duration } from '../../domain/duration.js';
import { ChronosError } from '../../domain/errors.js';
import { nameFault } from '../../domain/identifiers.js';
import { hashOf, type ScheduleDefinition } from '../../domain/schedule/schedule.js';
import type { HandlerHooks } from '../../handlers/hooks.js';
import { checkedPayload } from '../../handlers/payload.js';
import type { HandlerSource } from './handler-source.js';

/** What was set on a builder so far. */
export interface DefinitionInput {
  name: string | undefined;
  readonly task: HandlerSource;
  payload: unknown;
  options: ScheduleOptions;
  /** Fields of `options.cron` that a constraint may replace. */
  overridable: readonly CronField[];
  lease: Duration | undefined;
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
  /** Its name is a hash of its code, which differs between builds: it can only run inline. */
  readonly isUnnamedClosure: boolean;
}

export interface DefinitionContext extends ScheduleContext {
  maxPayloadBytes: number;
  now: Date;
}

/** Checks the input as a whole. Throws INVALID_SCHEDULE, INVALID_PAYLOAD or SCHEDULE_NEVER_RUNS. */
export function buildDefinition(input: DefinitionInput, context: DefinitionContext): Definition {
  const { task } = input;
  const name = input.name ?? nameFor(input);
  const where = `schedule '${name}'`;
  const fault = nameFault(name);
  if (fault !== undefined) throw new ChronosError('INVALID_SCHEDULE', `the name of a schedule ${fault}`);
  const isUnnamedClosure = input.name === undefined && task.kind === 'closure';
  if (isUnnamedClosure && input.options.queue !== undefined) {
    throw new ChronosError(
      'INVALID_SCHEDULE',
      'an unnamed closure cannot be queued: name it with named(), so that workers find its code',
    );
  }
  const schedule: ScheduleDefinition = {
    ...resolveSchedule(input.options, context, where, input.overridable),
    taskType: name,
    payload: checkedPayload(`the payload of ${where}`, input.payload ?? null, context.maxPayloadBytes),
  };
  assertHasOccurrences(where, schedule.rule, context.now);
  const { retries, timeout } = input.options;
  return Object.freeze({
    name,
    task,
    schedule: deepFreeze(schedule),
    hash: hashOf(schedule),
    options: deepFreeze(
      resolveHandlerOptions(name, {
        ...(retries !== undefined && { retries }),
        ...(timeout !== undefined && { timeout }),
        ...(input.lease !== undefined && { lease: input.lease }),
      }),
    ),
    hooks: frozenLists(input.hooks),
    dependsOn: Object.freeze([...input.dependsOn]),
    isUnnamedClosure,
  });
}

/**
 * A rule without an occurrence within five years is a mistake. The start of an interval is known only once the schedule
 * is stored; until then, this checks that its constraints can be met at all.
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

/** A pass runs it inline. */
export function isInline({ schedule }: Definition): boolean {
  return schedule.queue === null;
}

function nameFor({ task, payload }: DefinitionInput): string {
  const what = task.kind === 'closure' ? task.source : task.kind === 'taskType' ? task.taskType : null;
  return `${task.label}-${hashOf([what, payload ?? null])}`;
}

/** Freezes plain objects and arrays. Others, such as ObjectIds, stay as they are. */
function deepFreeze<T>(value: T): T {
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value ?? 0) === Object.prototype;
  if (!isPlain) return value;
  for (const inner of Object.values(value as object)) deepFreeze(inner);
  return Object.freeze(value);
}

function frozenLists(hooks: DefinitionInput['hooks']): HandlerHooks {
  const frozen = Object.entries(hooks).map(([key, list]) => [key, Object.freeze([...list])]);
  return Object.freeze(Object.fromEntries(frozen) as HandlerHooks);
}
