import { resolveHandlerOptions, type ResolvedHandlerOptions } from '../config/handler-options.js';
import type { ScheduleContext } from '../config/rule-readers.js';
import { resolveSchedule, type ScheduleOptions } from '../config/schedule-options.js';
import { checkedPayload } from '../dispatch/checked-payload.js';
import type { CronField } from '../domain/cron.js';
import type { Duration } from '../domain/duration.js';
import { ChronosError } from '../domain/errors.js';
import { nameFault } from '../domain/names.js';
import { occurrencesOf } from '../domain/occurrences.js';
import { hashOf, type ScheduleDefinition } from '../domain/schedule.js';
import type { Around } from '../worker/around.js';
import type { Task } from './task.js';

/** What was said on a builder so far. */
export interface Said {
  name: string | undefined;
  readonly task: Task;
  payload: unknown;
  options: ScheduleOptions;
  /** Fields of `options.cron` that a constraint may replace. */
  loose: readonly CronField[];
  lease: Duration | undefined;
  dependsOn: string[];
  readonly around: { [K in keyof Around]: Around[K][number][] };
}

/** A schedule defined in code, complete and frozen: a task type of its own name, with what is put around its handler. */
export interface Definition {
  readonly name: string;
  readonly task: Task;
  readonly schedule: Readonly<ScheduleDefinition>;
  /** Equal definitions have equal hashes, in every process. */
  readonly hash: string;
  readonly options: ResolvedHandlerOptions;
  readonly around: Around;
  readonly dependsOn: readonly string[];
  /** Named by its code alone: another build names it differently, so it can only run in place. */
  readonly isUnnamedClosure: boolean;
}

export interface DefinitionContext extends ScheduleContext {
  maxPayloadBytes: number;
  now: Date;
}

/** Checks everything that needs the whole; throws INVALID_SCHEDULE, INVALID_PAYLOAD or SCHEDULE_NEVER_RUNS. */
export function buildDefinition(said: Said, context: DefinitionContext): Definition {
  const { task } = said;
  const name = said.name ?? nameFor(said);
  const where = `schedule '${name}'`;
  const fault = nameFault(name);
  if (fault !== undefined) throw new ChronosError('INVALID_SCHEDULE', `the name of a schedule ${fault}`);
  const isUnnamedClosure = said.name === undefined && task.kind === 'closure';
  if (isUnnamedClosure && said.options.queue !== undefined) {
    throw new ChronosError(
      'INVALID_SCHEDULE',
      `an unnamed closure cannot be queued, workers would not find its code: give it a name with named()`,
    );
  }
  const schedule: ScheduleDefinition = {
    ...resolveSchedule(said.options, context, where, said.loose),
    taskType: name,
    payload: checkedPayload(`the payload of ${where}`, said.payload ?? null, context.maxPayloadBytes),
  };
  assertRuns(where, schedule.rule, context.now);
  const { retries, timeout } = said.options;
  return Object.freeze({
    name,
    task,
    schedule: deepFreeze(schedule),
    hash: hashOf(schedule),
    options: deepFreeze(
      resolveHandlerOptions(name, {
        ...(retries !== undefined && { retries }),
        ...(timeout !== undefined && { timeout }),
        ...(said.lease !== undefined && { lease: said.lease }),
      }),
    ),
    around: frozenLists(said.around),
    dependsOn: Object.freeze([...said.dependsOn]),
    isUnnamedClosure,
  });
}

/**
 * An endless search is no answer: a rule without a match within five years is a mistake. Where an interval counts from
 * is known once it is stored; before that, only whether its constraints can be met at all.
 */
export function assertRuns(
  where: string,
  rule: ScheduleDefinition['rule'],
  now: Date,
  anchor: Date | undefined = rule?.startsAt,
): void {
  if (rule === null) return;
  const { endsAt: _, ...unended } = rule;
  const { every, ...constrained } = unended;
  const asked =
    every === undefined || anchor !== undefined ? unended : { ...constrained, cron: '* * * * * *' };
  if (occurrencesOf(asked, anchor ?? now).next(now) !== null) return;
  throw new ChronosError(
    'SCHEDULE_NEVER_RUNS',
    `${where} never runs: ${JSON.stringify(unended)} has no match within five years from ${now.toISOString()}`,
  );
}

/** A one-pass run executes it in place. */
export function isInline({ schedule }: Definition): boolean {
  return schedule.queue === null;
}

function nameFor({ task, payload }: Said): string {
  const what = task.kind === 'closure' ? task.source : task.kind === 'taskType' ? task.taskType : null;
  return `${task.label}-${hashOf([what, payload ?? null])}`;
}

/** Plain objects and lists; what MongoDB brings along, like ObjectIds, stays as it is. */
function deepFreeze<T>(value: T): T {
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value ?? 0) === Object.prototype;
  if (!isPlain) return value;
  for (const inner of Object.values(value as object)) deepFreeze(inner);
  return Object.freeze(value);
}

function frozenLists(around: Said['around']): Around {
  const frozen = Object.entries(around).map(([key, list]) => [key, Object.freeze([...list])]);
  return Object.freeze(Object.fromEntries(frozen) as Around);
}
