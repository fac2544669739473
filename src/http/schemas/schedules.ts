import { type ScheduleQueryOptions, scheduleQueryShapes } from '../../config/method-options.js';
import { DEFAULT_PAGE, limitShape, MAX_PAGE } from '../../config/query-options.js';
import { type MisfireOptions, scheduleShapes } from '../../config/schedule-options.js';
import type { Instant } from '../../domain/instant.js';
import { MISFIRES, OVERLAPS, type SkipDocument } from '../../domain/schedule/schedule.js';
import {
  anything,
  described,
  flag,
  instant,
  integer,
  name,
  nullable as orNull,
  object,
  type Shape,
  type Shapes,
} from '../../domain/validation.js';
import type { DefinitionView, ScheduleDifference } from '../../operations/definitions.js';
import type { NewSchedule, SchedulePatch } from '../../schedules/stored/schedule-input.js';
import type { StoredSchedule } from '../../schedules/stored/stored-schedules.js';
import {
  anyValue,
  boolean,
  date,
  enumOf,
  idParam,
  list,
  next,
  nullable,
  number,
  openObject,
  response,
  type SchemaOf,
  string,
} from './schema.js';

/** As it is sent: without its methods. */
export type ScheduleAnswer = Omit<StoredSchedule, 'nextRuns'>;
export type SkipAnswer = Omit<SkipDocument, '_id' | 'scheduleId' | 'expiresAt'>;

const definitionProperties = {
  taskType: string(),
  rule: nullable(
    openObject<NonNullable<ScheduleAnswer['rule']>>('as it is stored; null: only when triggered'),
  ),
  payload: anyValue,
  queue: nullable(string()),
  priority: number(),
  retries: nullable(openObject<NonNullable<ScheduleAnswer['retries']>>()),
  timeout: nullable(number('milliseconds')),
  maxRunningTime: nullable(number('milliseconds')),
  misfire: response<Required<MisfireOptions> & { within: number }>({
    policy: enumOf(...MISFIRES),
    within: number('milliseconds'),
    cap: number(),
  }),
  overlap: enumOf(...OVERLAPS),
  jitter: number('milliseconds'),
  maxRuns: nullable(number()),
  enabled: boolean(),
  environments: list(string()),
  userId: nullable(string()),
};

const pause = nullable(
  response<NonNullable<ScheduleAnswer['paused']>>({
    at: date(),
    by: nullable(string()),
    reason: nullable(string()),
  }),
);

export const scheduleView = response<ScheduleAnswer>({
  id: string(),
  ...definitionProperties,
  owner: enumOf('code', 'api'),
  rev: number(),
  isActive: boolean(),
  paused: pause,
  disabledReason: nullable(string()),
  anchor: date(),
  nextRunAt: nullable(date()),
  lastRunAt: nullable(date()),
  active: nullable(string('the job of the current run')),
  runs: number(),
  createdAt: date(),
  updatedAt: date(),
  waiting: number('runs that wait for the current one'),
});

export interface SchedulePage {
  schedules: ScheduleAnswer[];
  next: string | null;
}

export const schedulePage = response<SchedulePage>({
  schedules: list(scheduleView),
  next,
});

export const scheduleParams = idParam(name, 'of a schedule, percent-encoded');
export const scheduleQuery: SchemaOf<ScheduleQueryOptions> = object({
  ...scheduleQueryShapes,
  limit: limitShape(DEFAULT_PAGE),
}).schema;
export const previewQuery: SchemaOf<{ count?: number; from?: Instant }> = object({
  count: described(integer(1, MAX_PAGE), 'default 5'),
  from: instant('UTC'),
}).schema;
export const preview = response<{ id: string; nextRuns: Date[] }>({ id: string(), nextRuns: list(date()) });

export const skipQuery: SchemaOf<{ limit?: number }> = object({ limit: limitShape(DEFAULT_PAGE) }).schema;
export const skips = response<{ skips: SkipAnswer[] }>({
  skips: list(
    response<SkipAnswer>({
      at: date('the first occurrence that was skipped'),
      until: date('the end of the range: occurrences before this one'),
      count: nullable(number()),
      reason: enumOf('misfire', 'overlap', 'backlog', 'replaced', 'paused', 'changed'),
      activeId: nullable(string('the run that was active then')),
      runningFor: nullable(number('milliseconds')),
      since: date(),
    }),
  ),
});

export const changedSchedule = response<{ id: string }>({ id: string() });
export const triggered = response<{ jobId: string }>({ jobId: string() });
export const backfillBody: SchemaOf<{ from: string; to: string }> = {
  ...object({ from: instant('UTC'), to: instant('UTC') }).schema,
  required: ['from', 'to'],
};
export const backfilled = response<{ occurrences: number; existing: number }>({
  occurrences: number(),
  existing: number('how many of them had a job already'),
});

export const differences = response<{ differences: ScheduleDifference[] }>({
  differences: list(
    response<ScheduleDifference>({
      name: string(),
      state: enumOf('same', 'new', 'changed', 'orphaned', 'taken'),
      changes: list(
        response<ScheduleDifference['changes'][number]>({
          field: string(),
          code: anyValue,
          stored: anyValue,
        }),
      ),
    }),
  ),
});

export const definitions = response<{ definitions: DefinitionView[] }>({
  definitions: list(
    response<DefinitionView>({
      name: string(),
      runs: response<DefinitionView['runs']>({ kind: string(), label: string() }),
      ...definitionProperties,
      dependsOn: list(string()),
      isServed: boolean(),
      hasHandler: boolean(),
      stored: nullable(
        response<NonNullable<DefinitionView['stored']>>({
          isActive: boolean(),
          paused: pause,
          disabledReason: nullable(string()),
          nextRunAt: nullable(date()),
          lastRunAt: nullable(date()),
        }),
      ),
      nextRuns: list(date()),
    }),
  ),
});

const shapes: Shapes<Omit<NewSchedule, 'id'>> = {
  taskType: name,
  payload: described(anything, 'passed to the handler of each run'),
  isActive: described(flag, 'false: paused'),
  ...scheduleShapes({ timezone: 'UTC', symbols: new Map() }),
};

/** docs/schedules.md describes the options; how they combine is checked when they are stored. */
export const scheduleBody: SchemaOf<NewSchedule> = {
  ...object<NewSchedule>({ id: name, ...shapes }).schema,
  required: ['taskType'],
};

/** The same, where null removes an option. */
export const schedulePatch: SchemaOf<SchedulePatch> = object<Record<string, unknown>>({
  ...Object.fromEntries(Object.entries<Shape<unknown>>(shapes).map(([key, shape]) => [key, orNull(shape)])),
  payload: shapes.payload,
}).schema;
