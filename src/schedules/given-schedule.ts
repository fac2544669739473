import { optionsError } from '../config/options-error.js';
import type { ScheduleContext } from '../config/rule-readers.js';
import { resolveSchedule, type ScheduleOptions } from '../config/schedule-options.js';
import { checkedPayload } from '../dispatch/checked-payload.js';
import type { Clock } from '../domain/clock.js';
import type { CronField } from '../domain/cron.js';
import { ChronosError, toError } from '../domain/errors.js';
import { checkTaskType } from '../domain/names.js';
import type { ScheduleDefinition } from '../domain/schedule.js';
import type { HandlerRegistry } from '../worker/handler-registry.js';
import { applySchema } from '../worker/payload-schema.js';
import { assertRuns } from './definition.js';

/** A schedule that is stored at run time. */
export interface NewSchedule extends ScheduleOptions {
  /** What its jobs run. */
  taskType: string;
  /** Default: one that is generated. */
  id?: string;
  payload?: unknown;
  /** Default true; false stores it paused. */
  isActive?: boolean;
}

/** What is said about a schedule besides which one it is and whether it is active. */
export type GivenSchedule = Omit<NewSchedule, 'id' | 'isActive'>;

export interface CheckingParts {
  clock: Clock;
  registry: HandlerRegistry;
  context: ScheduleContext;
  maxPayloadBytes: number;
}

export interface CheckRequest {
  where: string;
  /** Where an interval counts from. */
  anchor: Date;
  /** What was found wrong before. */
  faults?: readonly Error[];
  /** Fields of `cron` that a constraint may replace. */
  loose?: readonly CronField[];
}

/** Checks all of it, and names every fault in one error. */
export async function checkSchedule(
  { context, clock, registry, maxPayloadBytes }: CheckingParts,
  given: GivenSchedule,
  { where, anchor, faults = [], loose = [] }: CheckRequest,
): Promise<ScheduleDefinition> {
  const { taskType, payload = null, ...options } = given;
  let copy: unknown = null;
  let resolved: ReturnType<typeof resolveSchedule> | undefined;
  const all = [
    ...faults,
    ...faultsOf(() => checkTaskType(taskType)),
    ...faultsOf(() => (copy = checkedPayload(`the payload of ${where}`, payload, maxPayloadBytes))),
    ...faultsOf(() => (resolved = resolveSchedule(options, context, where, loose))),
  ];
  if (resolved?.rule === null) {
    all.push(new ChronosError('INVALID_SCHEDULE', `${where} needs a rule: cron, fields, symbol or every`));
  }
  if (all.length > 0 || resolved === undefined) throw together(all);
  assertRuns(where, resolved.rule, clock.now(), resolved.rule?.startsAt ?? anchor);
  const schema = registry.get(taskType)?.options.schema;
  if (schema !== undefined) await applySchema(taskType, schema, copy);
  return { ...resolved, taskType, payload: copy };
}

/** What it throws, if it does. */
export function faultsOf(check: () => unknown): Error[] {
  try {
    check();
    return [];
  } catch (thrown) {
    return [toError(thrown)];
  }
}

/** One error is thrown as it is; several become one that names all of them. */
function together(errors: readonly Error[]): Error {
  const [only] = errors;
  if (errors.length === 1 && only !== undefined) return only;
  return optionsError(
    'INVALID_SCHEDULE',
    errors.map(({ message }) => message),
  );
}
