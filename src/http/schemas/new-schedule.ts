import type { MisfireOptions } from '../../config/schedule-options.js';
import type { FieldPattern, FieldSchedule } from '../../domain/field-schedule.js';
import { MISFIRES, OVERLAPS } from '../../domain/schedule.js';
import type { NewSchedule } from '../../schedules/given-schedule.js';
import type { SchedulePatch } from '../../schedules/schedule-patch.js';
import { retries } from './jobs.js';
import {
  anything,
  either,
  flag,
  input,
  integer,
  list,
  oneOf,
  text,
  type Schema,
  type SchemaOf,
} from './schema.js';
import { duration, instant, name } from './values.js';

const pattern: SchemaOf<FieldPattern> = either(integer(0, 9999), text(200));

function numbers(least: number, most: number): SchemaOf<number | readonly number[]> {
  return either(integer(least, most), { ...list(integer(least, most), 60), minItems: 1 });
}

const times: SchemaOf<readonly [string, string]> = {
  type: 'array',
  items: text(8, "two times like '09:00' and '17:30'"),
  minItems: 2,
  maxItems: 2,
};

const properties = {
  taskType: name,
  payload: anything('handed to the handler of each run'),
  isActive: flag('false: paused'),
  cron: text(200, 'five or six fields, or @daily and its like'),
  fields: input<FieldSchedule>({
    minutes: pattern,
    hours: pattern,
    mday: pattern,
    day: pattern,
    wday: pattern,
    mon: pattern,
    year: pattern,
  }),
  symbol: name,
  every: duration,
  seconds: numbers(0, 59),
  minutes: numbers(0, 59),
  hours: numbers(0, 23),
  days: numbers(1, 31),
  months: numbers(1, 12),
  weekdays: numbers(0, 7),
  between: times,
  except: list(text(10, "a day like '2026-12-24' or '12-25'"), 1000),
  timezone: text(100),
  startsAt: instant,
  endsAt: instant,
  queue: name,
  priority: integer(0, 1000),
  retries,
  timeout: duration,
  maxRunningTime: duration,
  overlap: oneOf(...OVERLAPS),
  misfire: input<MisfireOptions>({ policy: oneOf(...MISFIRES), within: duration, cap: integer(1, 1000) }),
  jitter: duration,
  maxRuns: integer(1, Number.MAX_SAFE_INTEGER),
  enabled: flag(),
  environments: list(name, 100),
  userId: name,
};

/** The options are those of docs/schedules.md; what they mean together is checked when they are stored. */
export const scheduleBody = input<NewSchedule>({ id: name, ...properties }, ['taskType']);

/** The same where null takes something back. */
export const schedulePatch: SchemaOf<SchedulePatch> = {
  type: 'object',
  properties: Object.fromEntries(
    Object.entries<Schema>(properties).map(([key, schema]) => [key, orNull(schema)]),
  ),
  additionalProperties: false,
};

function orNull(schema: Schema): Schema {
  // What may be anything may be null.
  if (Object.keys(schema).every((key) => key === 'description')) return schema;
  return { anyOf: [schema, { type: 'null' }] };
}
