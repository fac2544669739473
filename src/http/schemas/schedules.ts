import { type ScheduleQueryOptions, scheduleQueryShapes } from '../../config/method-options.js';
import { MAX_PAGE, type PageOptions, pageShapes } from '../../config/query-options.js';
import { type MisfireOptions, scheduleShapes } from '../../config/schedule-options.js';
import type { Instant } from '../../domain/instant.js';
import { MISFIRES, OVERLAPS } from '../../domain/schedule/schedule.js';
import * as v from '../../domain/validation.js';
import type { DefinitionView, ScheduleDifference } from '../../operations/definitions.js';
import type { NewSchedule, SchedulePatch, ScheduleUpsert } from '../../schedules/stored/schedule-input.js';
import type { SkipView, StoredSchedule, UpsertResult } from '../../schedules/stored/stored-schedules.js';
import * as s from './schema.js';

type ScheduleResponse = Omit<StoredSchedule, 'nextRuns'>;

const definitionProperties = {
  taskType: s.string(),
  rule: s.nullable(
    s.openObject<NonNullable<ScheduleResponse['rule']>>('as it is stored; null: runs only when triggered'),
  ),
  payload: s.anyValue,
  queue: s.nullable(s.string()),
  priority: s.number(),
  retries: s.nullable(s.openObject<NonNullable<ScheduleResponse['retries']>>()),
  timeout: s.nullable(s.number('milliseconds')),
  maxRunningTime: s.nullable(s.number('milliseconds')),
  expiresIn: s.nullable(s.number('milliseconds')),
  misfire: s.response<Required<MisfireOptions> & { within: number }>({
    policy: s.enumOf(...MISFIRES),
    within: s.number('milliseconds'),
    cap: s.number(),
  }),
  overlap: s.enumOf(...OVERLAPS),
  singleInstance: s.boolean(),
  jitter: s.number('milliseconds'),
  maxRuns: s.nullable(s.number()),
  enabled: s.boolean(),
  environments: s.list(s.string()),
  userId: s.nullable(s.string()),
};

const pause = s.nullableObject<ScheduleResponse['paused']>({
  at: s.date(),
  by: s.nullable(s.string()),
  reason: s.nullable(s.string()),
});

export const scheduleView = s.response<ScheduleResponse>({
  id: s.string(),
  ...definitionProperties,
  owner: s.enumOf('code', 'api'),
  rev: s.number(),
  isActive: s.boolean(),
  paused: pause,
  disabledReason: s.nullable(s.string()),
  anchor: s.date(),
  nextRunAt: s.nullable(s.date()),
  lastRunAt: s.nullable(s.date()),
  active: s.nullable(s.string('the job of the current run')),
  runs: s.number(),
  createdAt: s.date(),
  updatedAt: s.date(),
  waiting: s.number('runs that wait for the current one'),
  invalid: s.nullable(s.string('what is wrong with the stored document')),
});

export const schedulePage = s.page(scheduleView);

export const scheduleParams = s.idParam(v.name, 'of a schedule, percent-encoded');
export const scheduleQuery: s.SchemaOf<ScheduleQueryOptions> = v.object(scheduleQueryShapes).schema;
export const previewQuery: s.SchemaOf<{ count?: number; from?: Instant }> = v.object({
  count: v.described(v.integer(1, MAX_PAGE), 'default 5'),
  from: v.instant('UTC'),
}).schema;
export const preview = s.response<{ id: string; nextRuns: Date[] }>({
  id: s.string(),
  nextRuns: s.list(s.date()),
});

export const skipQuery: s.SchemaOf<PageOptions> = v.object(pageShapes).schema;
export const skipPage = s.page(
  s.response<SkipView>({
    at: s.date('the first occurrence that was skipped'),
    until: s.date('the end of the skipped range (exclusive)'),
    count: s.nullable(s.number()),
    reason: s.enumOf('misfire', 'overlap', 'backlog', 'replaced', 'paused', 'changed'),
    activeId: s.nullable(s.string('the run that was active at that time')),
    runningFor: s.nullable(s.number('milliseconds')),
    since: s.date(),
  }),
);

export const changedSchedule = s.response<{ id: string }>({ id: s.string() });
export const triggered = s.response<{ jobId: string }>({ jobId: s.string() });
export const backfillBody: s.SchemaOf<{ from: string; to: string }> = {
  ...v.object({ from: v.instant('UTC'), to: v.instant('UTC') }).schema,
  required: ['from', 'to'],
};
export const backfilled = s.response<{ occurrences: number; existing: number }>({
  occurrences: s.number(),
  existing: s.number('how many of them already had a job'),
});

export const differences = s.response<{ differences: ScheduleDifference[] }>({
  differences: s.objectList<ScheduleDifference>({
    name: s.string(),
    state: s.enumOf('same', 'new', 'changed', 'orphaned', 'taken'),
    changes: s.objectList<ScheduleDifference['changes'][number]>({
      field: s.string(),
      code: s.anyValue,
      stored: s.anyValue,
    }),
  }),
});

export const definitionPage = s.page(
  s.response<DefinitionView>({
    name: s.string(),
    runs: s.response<DefinitionView['runs']>({ kind: s.string(), label: s.string() }),
    ...definitionProperties,
    dependsOn: s.list(s.string()),
    isServed: s.boolean(),
    hasHandler: s.boolean(),
    stored: s.nullableObject<DefinitionView['stored']>({
      isActive: s.boolean(),
      paused: pause,
      disabledReason: s.nullable(s.string()),
      nextRunAt: s.nullable(s.date()),
      lastRunAt: s.nullable(s.date()),
    }),
    nextRuns: s.list(s.date()),
  }),
);

const definitionShapes: v.Shapes<Omit<ScheduleUpsert, 'id'>> = {
  taskType: v.name,
  payload: v.described(v.anything, 'passed to the handler of each run'),
  ...scheduleShapes({ timezone: 'UTC', symbols: new Map() }),
};
const shapes: v.Shapes<Omit<NewSchedule, 'id'>> = {
  ...definitionShapes,
  isActive: v.described(v.flag, 'false: paused'),
};

/** docs/schedules.md describes the options. Which ones can be combined is checked when the schedule is stored. */
export const scheduleBody: s.SchemaOf<NewSchedule> = {
  ...v.object<NewSchedule>({ id: v.name, ...shapes }).schema,
  required: ['taskType'],
};

/** The whole definition: what is left out gets its default. */
export const scheduleUpsert: s.SchemaOf<Omit<ScheduleUpsert, 'id'>> = {
  ...v.object<Omit<ScheduleUpsert, 'id'>>(definitionShapes).schema,
  required: ['taskType'],
};
export const upserted = s.response<UpsertResult>({
  id: s.string(),
  result: s.enumOf('created', 'updated', 'unchanged'),
});

/** The same, where null removes an option. */
export const schedulePatch: s.SchemaOf<SchedulePatch> = v.object<Record<string, unknown>>({
  ...Object.fromEntries(
    Object.entries<v.Shape<unknown>>(shapes).map(([key, shape]) => [key, v.nullable(shape)]),
  ),
  payload: shapes.payload,
}).schema;
