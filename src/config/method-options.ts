import type { Duration } from '../domain/duration.js';
import { ChronosError } from '../domain/errors.js';
import { MAX_REASON_LENGTH } from '../domain/identifiers.js';
import type { Instant } from '../domain/instant.js';
import * as v from '../domain/validation.js';
import { type PageOptions, type PageQuery, pageShapes, toPageQuery } from './query-options.js';

/** When a job is due instead: exactly one of the two. */
export interface RescheduleOptions {
  /** At this instant; text without a zone is in the application's time zone. */
  at?: Instant;
  /** This long from now. */
  delay?: Duration;
}

/** How long to wait for the end of a job. */
export interface WaitOptions {
  /** Throw WAIT_TIMEOUT after this time. Default: no limit. */
  timeout?: Duration;
}

/** Why a schedule is paused, and by whom. */
export interface PauseOptions {
  by?: string;
  reason?: string;
}

/** Selects the schedules that match every field. */
export interface ScheduleFilter {
  /** `code`: defined in code; `api`: stored with `addSchedule()` or over HTTP. */
  owner?: 'code' | 'api';
  userId?: string;
  taskType?: string;
  isActive?: boolean;
}

/** Selects schedules, page by page. */
export type ScheduleQueryOptions = ScheduleFilter & PageOptions;

export const reasonShape = v.described(v.text(MAX_REASON_LENGTH), 'why; stored with the job or schedule');
const pauseShape = v.object<PauseOptions>({ by: v.name, reason: reasonShape });
export const scheduleQueryShapes: v.Shapes<ScheduleQueryOptions> = {
  owner: v.oneOf('code', 'api'),
  userId: v.name,
  taskType: v.name,
  isActive: v.flag,
  ...pageShapes,
};

/** What `install()` does besides creating what is missing. */
export interface InstallOptions {
  /** On a sharded cluster: distribute jobs and their execution log over the shards, by hashed id. Default false. */
  shard?: boolean;
}

export function parseInstallOptions(input: unknown): InstallOptions {
  const shape = v.object<InstallOptions>({ shard: v.flag });
  return v.parse(shape, input, 'install() options', 'INVALID_ARGUMENT');
}

/** What a pass of `runOnce()` executes. */
export interface PassOptions {
  /** Run what is due in the minute that ends with this instant, instead of what is due now. */
  at?: Instant;
  /** Only report what would run; nothing is written. Default false. */
  dryRun?: boolean;
  /** Execute up to this many due jobs besides the definitions. Default 32; 0 for none. */
  batch?: number;
}

/** When `daemon()` makes passes, and when it ends. */
export interface DaemonOptions {
  /** Time between two passes. Default `'1m'`. */
  interval?: Duration;
  /** End after this many passes in a row that took longer than the interval. Default: never. */
  maxOverruns?: number;
  /** As in `runOnce()`. Default 32. */
  batch?: number;
}

const DEFAULT_BATCH = 32;
export const MAX_BATCH = 1_000_000;
export const batchShape = v.integer(0, MAX_BATCH);

export const daemonShapes = {
  interval: v.duration({ min: 100 }),
  maxOverruns: v.integer(1, 1_000_000),
  batch: batchShape,
};

export interface ResolvedPassOptions {
  at?: Date;
  dryRun?: boolean;
  batch: number;
}

export function parsePassOptions(input: unknown, timezone: string): ResolvedPassOptions {
  const shape = v.object<ResolvedPassOptions>({ at: v.instant(timezone), dryRun: v.flag, batch: batchShape });
  return { batch: DEFAULT_BATCH, ...v.parse(shape, input, 'runOnce() options', 'INVALID_ARGUMENT') };
}

export function parseDaemonOptions(input: unknown): v.Parsed<typeof daemonShapes> {
  const options = v.parse(v.object(daemonShapes), input, 'daemon() options', 'INVALID_ARGUMENT');
  return { interval: 60_000, maxOverruns: Infinity, batch: DEFAULT_BATCH, ...options };
}

export function parsePauseOptions(input: unknown): PauseOptions {
  return v.parse(pauseShape, input, 'pauseSchedule() options', 'INVALID_ARGUMENT');
}

export function parseScheduleQuery(input: unknown): PageQuery<ScheduleFilter> {
  const shape = v.object(scheduleQueryShapes);
  return toPageQuery(v.parse(shape, input, 'listSchedules() query', 'INVALID_ARGUMENT'));
}

export function parseSkipQuery(input: unknown): PageQuery<object> {
  return toPageQuery(
    v.parse(v.object<PageOptions>(pageShapes), input, 'getSkips() query', 'INVALID_ARGUMENT'),
  );
}

/** `where` names the options in errors. */
export function parseWaitOptions(input: unknown, where: string): { timeout: number } {
  const shape = v.object<{ timeout: number }>({ timeout: v.duration() });
  return { timeout: Infinity, ...v.parse(shape, input, where, 'INVALID_ARGUMENT') };
}

/** The new due time. */
export function parseReschedule(input: unknown, timezone: string, now: Date): Date {
  const shape = v.object<{ at: Date; delay: number }>({ at: v.instant(timezone), delay: v.duration() });
  const { at, delay } = v.parse(shape, input, 'reschedule() options', 'INVALID_ARGUMENT');
  if ((at === undefined) === (delay === undefined))
    throw new ChronosError('INVALID_ARGUMENT', 'reschedule() needs either `at` or `delay`: set one of them');
  return at ?? new Date(now.getTime() + (delay ?? 0));
}
