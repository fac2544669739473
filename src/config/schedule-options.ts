import type { RetryPolicy } from '../domain/backoff.js';
import type { CronField } from '../domain/cron.js';
import type { Duration } from '../domain/duration.js';
import type { FieldSchedule } from '../domain/field-schedule.js';
import type { Instant } from '../domain/instant.js';
import {
  DEFAULT_MISFIRE,
  MISFIRES,
  OVERLAPS,
  type Misfire,
  type Overlap,
  type ScheduleDefinition,
} from '../domain/schedule.js';
import { DEFAULT_PRIORITY } from './options.js';
import { optionsError } from './options-error.js';
import { duration, flag, listOf, name, oneOf, record, wholeNumber, type Readers } from './readers.js';
import { retryReader, type RetryOptions } from './retry-options.js';
import { BASES, ruleOf } from './rule-options.js';
import { ruleReaders, type ReadRule, type ScheduleContext } from './rule-readers.js';

/** What happens to runs that were missed. */
export interface MisfireOptions {
  /** `skip` none of them, `once` the last of them, `all` of them. Default `once`. Up to a minute late is not missed. */
  policy?: Misfire['policy'];
  /** Older ones are skipped whatever the policy. Default `'1d'`. */
  within?: Duration;
  /** `all` makes up for the last ones, at most this many. Default 100. */
  cap?: number;
}

/** When a schedule is due, and how its jobs run. One of `cron`, `fields`, `symbol` and `every` is its base. */
export interface ScheduleOptions {
  /** Five or six fields, or `@daily` and its like. */
  cron?: string;
  /** Field by field; all that are given must match. */
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
  /** Only between these times of the day, both included; may pass midnight. */
  between?: readonly [string, string];
  /** Not on these days: `'2026-12-24'`, or `'12-25'` for every year. */
  except?: readonly string[];
  /** Default: the Scheduler's `timezone`. */
  timezone?: string;
  /** Not before this instant. */
  startsAt?: Instant;
  /** Not after this instant. */
  endsAt?: Instant;
  /** Queue of its jobs. Default: none; workers then take them in `default`, and a one-pass run executes them in place. */
  queue?: string;
  /** 0–1000, lower is more urgent. Default 100. */
  priority?: number;
  /** Overrides the handler's `retries`. */
  retries?: RetryOptions;
  /** Overrides the handler's `timeout` of one attempt. */
  timeout?: Duration;
  /** Longest time of one run, over all its attempts. Default none. */
  maxRunningTime?: Duration;
  /** What to do while the run before is not finished: `skip`, `queue`, `replace` it, or `allow` both. Default `skip`. */
  overlap?: Overlap;
  /** What happens to runs that were missed. Default: the last of them is made up for, within a day. */
  misfire?: MisfireOptions;
  /** Delays each run by up to this, evenly spread. Default none. */
  jitter?: Duration;
  /** Ends after this many runs. Default none. */
  maxRuns?: number;
  /** Default true. */
  enabled?: boolean;
  /** Only where the Scheduler's `environment` is one of these. Default everywhere. */
  environments?: readonly string[];
  /** Whose schedule it is; its jobs carry it. */
  userId?: string;
}

/** What is said about how its jobs run and what becomes of its occurrences, as read. */
interface ReadRunning {
  queue: string;
  priority: number;
  retries: Partial<RetryPolicy>;
  timeout: number;
  maxRunningTime: number;
  overlap: Overlap;
  misfire: Partial<Misfire>;
  jitter: number;
  maxRuns: number;
  enabled: boolean;
  environments: readonly string[];
  userId: string;
}

const runningReaders: Readers<ReadRunning> = {
  queue: name(),
  priority: wholeNumber(0, 1000),
  retries: retryReader,
  timeout: duration({ min: 1 }),
  maxRunningTime: duration({ min: 1 }),
  overlap: oneOf(...OVERLAPS),
  misfire: record<Misfire>({
    policy: oneOf(...MISFIRES),
    within: duration(),
    cap: wholeNumber(1, 1000),
  }),
  jitter: duration(),
  maxRuns: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  enabled: flag(),
  environments: listOf(name(), { mayBeEmpty: true }),
  userId: name(),
};

/** Each option by itself, and those that exclude each other. Throws INVALID_SCHEDULE with every fault. */
export function readSchedule(
  input: ScheduleOptions,
  context: ScheduleContext,
  where: string,
): Partial<ReadRule & ReadRunning> {
  const faults: string[] = [];
  const readers = record<ReadRule & ReadRunning>({ ...ruleReaders(context), ...runningReaders });
  const read = readers(input, where, faults) ?? {};
  const bases = BASES.filter((base) => read[base] !== undefined);
  if (bases.length > 1)
    faults.push(`${where}.${bases.join(` and ${where}.`)} exclude each other: give one of them`);
  if (read.startsAt !== undefined && read.endsAt !== undefined && read.endsAt < read.startsAt) {
    faults.push(`${where}.endsAt must not be before ${where}.startsAt`);
  }
  if (faults.length > 0) throw optionsError('INVALID_SCHEDULE', faults);
  return read;
}

/** The whole, with its defaults. Throws INVALID_SCHEDULE. `loose`: fields of `cron` that a constraint may replace. */
export function resolveSchedule(
  input: ScheduleOptions,
  context: ScheduleContext,
  where: string,
  loose: readonly CronField[] = [],
): Omit<ScheduleDefinition, 'taskType' | 'payload'> {
  const read = readSchedule(input, context, where);
  return {
    rule: ruleOf(read, context, loose, where),
    queue: read.queue ?? null,
    priority: read.priority ?? DEFAULT_PRIORITY,
    retries: read.retries ?? null,
    timeout: read.timeout ?? null,
    maxRunningTime: read.maxRunningTime ?? null,
    misfire: { ...DEFAULT_MISFIRE, ...read.misfire },
    overlap: read.overlap ?? 'skip',
    jitter: read.jitter ?? 0,
    maxRuns: read.maxRuns ?? null,
    enabled: read.enabled ?? true,
    environments: read.environments ?? [],
    userId: read.userId ?? null,
  };
}
