import type { Duration } from '../domain/duration.js';
import { MAX_REASON_LENGTH } from '../domain/identifiers.js';
import type { Instant } from '../domain/instant.js';
import {
  described,
  duration,
  flag,
  instant,
  integer,
  name,
  object,
  oneOf,
  parse,
  type Shapes,
  text,
} from '../domain/validation.js';
import { limitShape } from './query-options.js';

/** Why a schedule is paused, and by whom. */
export interface PauseOptions {
  by?: string;
  reason?: string;
}

/** Which schedules to list. */
export interface ScheduleQueryOptions {
  /** Defined in code, or stored by the API. */
  owner?: 'code' | 'api';
  userId?: string;
  taskType?: string;
  isActive?: boolean;
  /** Only schedules whose id comes after this one: the next page. */
  after?: string;
  /** Default 100, at most 200. */
  limit?: number;
}

const DEFAULT_SCHEDULE_PAGE = 100;

export const reasonShape = described(text(MAX_REASON_LENGTH), 'why; stored with the job or schedule');
const pauseShape = object<PauseOptions>({ by: name, reason: reasonShape });
export const scheduleQueryShapes: Shapes<ScheduleQueryOptions> = {
  owner: oneOf('code', 'api'),
  userId: name,
  taskType: name,
  isActive: flag,
  after: name,
  limit: limitShape(DEFAULT_SCHEDULE_PAGE),
};

/** What `runOnce()` does. */
export interface PassOptions {
  /** Run what is due in the minute that ends with this instant, instead of what is due now. */
  at?: Instant;
  /** Only report what would run; nothing is written. Default false. */
  dryRun?: boolean;
  /** Execute up to this many due jobs besides the definitions. Default 32; 0 for none. */
  batch?: number;
}

/** How often `daemon()` makes a pass. */
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
export const batchShape = integer(0, MAX_BATCH);

export const daemonShapes: Shapes<{ interval: number; maxOverruns: number; batch: number }> = {
  interval: duration({ min: 100 }),
  maxOverruns: integer(1, 1_000_000),
  batch: batchShape,
};

export interface ResolvedPassOptions {
  at?: Date;
  dryRun?: boolean;
  batch: number;
}

export function parsePassOptions(input: unknown, timezone: string): ResolvedPassOptions {
  const shape = object<ResolvedPassOptions>({ at: instant(timezone), dryRun: flag, batch: batchShape });
  return { batch: DEFAULT_BATCH, ...parse(shape, input, 'runOnce() options', 'INVALID_ARGUMENT') };
}

export function parseDaemonOptions(input: unknown): { interval: number; maxOverruns: number; batch: number } {
  const options = parse(object(daemonShapes), input, 'daemon() options', 'INVALID_ARGUMENT');
  return { interval: 60_000, maxOverruns: Infinity, batch: DEFAULT_BATCH, ...options };
}

export function parsePauseOptions(input: unknown): PauseOptions {
  return parse(pauseShape, input, 'pauseSchedule() options', 'INVALID_ARGUMENT');
}

export function parseScheduleQuery(input: unknown): ScheduleQueryOptions & { limit: number } {
  const query = parse(object(scheduleQueryShapes), input, 'listSchedules() options', 'INVALID_ARGUMENT');
  return { limit: DEFAULT_SCHEDULE_PAGE, ...query };
}
