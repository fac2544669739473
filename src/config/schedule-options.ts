import type { CronField } from '../domain/calendar/cron.js';
import type { FieldSchedule } from '../domain/calendar/field-schedule.js';
import type { Duration } from '../domain/duration.js';
import type { Instant } from '../domain/instant.js';
import {
  DEFAULT_MISFIRE,
  MAX_MISFIRE_CAP,
  type Misfire,
  MISFIRES,
  type Overlap,
  OVERLAPS,
  type ScheduleDefinition,
} from '../domain/schedule/schedule.js';
import * as v from '../domain/validation.js';
import { priorityShape } from './dispatch-options.js';
import { expiresInShape, type RetryOptions, retryShape } from './handler-options.js';
import { DEFAULT_PRIORITY } from './options.js';
import { BASES, type ParsedRule, ruleShapes, type ScheduleContext, toRule } from './rule-options.js';

/** What happens to runs that were missed. */
export interface MisfireOptions {
  /** `skip` runs none of them, `once` the last one, `all` all of them. Default `once`. Up to a minute late is not missed. */
  policy?: Misfire['policy'];
  /** Runs that are older than this are always skipped. Default `'1d'`. */
  within?: Duration;
  /** How many missed runs `all` runs at most: the last ones. Default 100. */
  cap?: number;
}

/** When a schedule is due, and how its jobs run. At most one of `cron`, `fields`, `symbol` and `every` may be set. */
export interface ScheduleOptions {
  /** Five or six fields, or `@daily` and the like. */
  cron?: string;
  /** Patterns by field; all of them must match. */
  fields?: FieldSchedule;
  /** A name: `EVERY_HOUR`, or one of the Scheduler's `symbols`. */
  symbol?: string;
  /** An interval in real time, from `startsAt` or from when the schedule was first stored. At least `'1s'`. */
  every?: Duration;
  /** Only at these seconds. */
  seconds?: number | readonly number[];
  /** Only at these minutes. */
  minutes?: number | readonly number[];
  /** Only at these hours. */
  hours?: number | readonly number[];
  /** Only on these days of the month. */
  days?: number | readonly number[];
  /** Only in these months, 1–12. */
  months?: number | readonly number[];
  /** Only on these days of the week; 0 is Sunday. */
  weekdays?: number | readonly number[];
  /** Only between these times of the day, inclusive; the range may pass midnight. */
  between?: readonly [string, string];
  /** Not on these days: `'2026-12-24'`, or `'12-25'` for every year. */
  except?: readonly string[];
  /** Default: the Scheduler's `timezone`. */
  timezone?: string;
  /** Not before this instant. */
  startsAt?: Instant;
  /** Not after this instant. */
  endsAt?: Instant;
  /** Queue of its jobs. Default: none; workers then use `default`, and a one-pass run executes them inline. */
  queue?: string;
  /** 0–1000, lower is more urgent. Default 100. */
  priority?: number;
  /** Overrides the handler's `retries`. */
  retries?: RetryOptions;
  /** Overrides the handler's `timeout` of one attempt. */
  timeout?: Duration;
  /** How long one run may take, over all its attempts. An occurrence that has not started within this time after it was due (or created, if later) ends `expired`. Default none. */
  maxRunningTime?: Duration;
  /** A run that has not started this long after it was due never starts: it ends `expired`. Default: never. */
  expiresIn?: Duration;
  /** While the previous run is active: `skip` the new one, `queue` it, `replace` the previous one, or `allow` both. Default `skip`. */
  overlap?: Overlap;
  /** What happens to runs that were missed. Default: the last one runs if it is less than a day late. */
  misfire?: MisfireOptions;
  /** Delays each run by a random time up to this. Default none. */
  jitter?: Duration;
  /** The schedule ends after this many runs. Default none. */
  maxRuns?: number;
  /** Whether it creates jobs. Default true. */
  enabled?: boolean;
  /** Only where the Scheduler's `environment` is one of these. Default: everywhere. */
  environments?: readonly string[];
  /** The user it belongs to; stored with its jobs, too. */
  userId?: string;
}

/** Shapes of the options that do not belong to the rule. */
const runShapes = {
  queue: v.name,
  priority: priorityShape,
  retries: retryShape,
  timeout: v.duration({ min: 1 }),
  maxRunningTime: v.duration({ min: 1 }),
  expiresIn: expiresInShape,
  overlap: v.oneOf(...OVERLAPS),
  misfire: v.object<Misfire>({
    policy: v.oneOf(...MISFIRES),
    within: v.duration(),
    cap: v.integer(1, MAX_MISFIRE_CAP),
  }),
  jitter: v.duration(),
  maxRuns: v.integer(1, Number.MAX_SAFE_INTEGER),
  enabled: v.flag,
  environments: v.listOf(v.name, { min: 0, max: 100 }),
  userId: v.name,
};

type ParsedSchedule = ParsedRule & v.Parsed<typeof runShapes>;

export function scheduleShapes(context: ScheduleContext): v.Shapes<ParsedSchedule> {
  return { ...ruleShapes(context), ...runShapes };
}

/** The builder parses one option per call, and creating a shape takes longer than using it. */
const shapesByContext = new WeakMap<ScheduleContext, v.Shape<Partial<ParsedSchedule>>>();

/** Parses the options that are set. Throws INVALID_SCHEDULE with every problem. */
export function parseSchedule(
  input: ScheduleOptions,
  context: ScheduleContext,
  where: string,
): Partial<ParsedSchedule> {
  let shape = shapesByContext.get(context);
  if (shape === undefined) {
    shape = v.refine(v.object(scheduleShapes(context)), checkCombinations);
    shapesByContext.set(context, shape);
  }
  return v.parse(shape, input, where, 'INVALID_SCHEDULE');
}

function checkCombinations(
  schedule: Partial<ParsedSchedule>,
  path: string,
  errors: string[],
): Partial<ParsedSchedule> {
  const bases = BASES.filter((base) => schedule[base] !== undefined);
  if (bases.length > 1)
    errors.push(`${path}.${bases.join(` and ${path}.`)} exclude each other: set one of them`);
  const { startsAt, endsAt } = schedule;
  if (startsAt !== undefined && endsAt !== undefined && endsAt < startsAt)
    errors.push(`${path}.endsAt must not be before ${path}.startsAt`);
  return schedule;
}

/** Parses and fills in the defaults. Throws INVALID_SCHEDULE. `overridable`: fields of `cron` that a constraint may replace. */
export function resolveSchedule(
  input: ScheduleOptions,
  context: ScheduleContext,
  where: string,
  overridable: readonly CronField[] = [],
): Omit<ScheduleDefinition, 'taskType' | 'payload'> {
  const parsed = parseSchedule(input, context, where);
  return {
    rule: toRule(parsed, context, overridable, where),
    queue: parsed.queue ?? null,
    priority: parsed.priority ?? DEFAULT_PRIORITY,
    retries: parsed.retries ?? null,
    timeout: parsed.timeout ?? null,
    maxRunningTime: parsed.maxRunningTime ?? null,
    expiresIn: parsed.expiresIn ?? null,
    misfire: { ...DEFAULT_MISFIRE, ...parsed.misfire },
    overlap: parsed.overlap ?? 'skip',
    singleInstance: false,
    jitter: parsed.jitter ?? 0,
    maxRuns: parsed.maxRuns ?? null,
    enabled: parsed.enabled ?? true,
    environments: parsed.environments ?? [],
    userId: parsed.userId ?? null,
  };
}
