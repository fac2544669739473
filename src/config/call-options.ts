import type { Duration } from '../domain/duration.js';
import { parseInstant, type Instant } from '../domain/instant.js';
import { optionsError } from './options-error.js';
import { duration, flag, name, oneOf, record, throwing, wholeNumber } from './readers.js';

const readWait = record<{ timeout: number }>({ timeout: duration() });
const readWithLock = record<{ wait: number }>({ wait: duration() });
const readRequest = record<{ taskType: unknown; payload: unknown; options: unknown }>({
  taskType: anything,
  payload: anything,
  options: anything,
});

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
  /** Those whose id comes after this one: the next page. */
  after?: string;
  /** Default 100, at most 1000. */
  limit?: number;
}

const readPauseOptions = record<Required<PauseOptions>>({ by: name(), reason: name() });
const readQuery = record<Required<ScheduleQueryOptions>>({
  owner: oneOf('code', 'api'),
  userId: name(),
  taskType: name(),
  isActive: flag(),
  after: name(),
  limit: wholeNumber(1, 1000),
});

/** What `runOnce()` is asked to do. */
export interface PassOptions {
  /** What is due in the minute that ends with this instant, instead of what is due now. */
  at?: Instant;
  /** Only tell what would run; nothing is written. Default false. */
  dryRun?: boolean;
  /** Execute up to this many due jobs besides the definitions. Default 32; 0 for none. */
  batch?: number;
}

/** How `daemon()` ticks. */
export interface DaemonOptions {
  /** Time between two passes. Default `'1m'`. */
  interval?: Duration;
  /** End after this many ticks in a row that took longer than the interval. Default: never. */
  maxOverruns?: number;
  /** As in `runOnce()`. Default 32. */
  batch?: number;
}

const readDaemon = record<{ interval: number; maxOverruns: number; batch: number }>({
  interval: duration({ min: 100 }),
  maxOverruns: wholeNumber(1, 1_000_000),
  batch: wholeNumber(0, 1_000_000),
});

export function readPassOptions(
  input: unknown,
  timezone: string,
): { at: Date | undefined; dryRun: boolean; batch: number } {
  const read = record<{ at: Date; dryRun: boolean; batch: number }>({
    at: throwing((value) => parseInstant(value, timezone, 'it')),
    dryRun: flag(),
    batch: wholeNumber(0, 1_000_000),
  });
  const given = checked((faults) => read(input, 'runOnce() options', faults));
  return { at: undefined, dryRun: false, batch: 32, ...given };
}

export function readDaemonOptions(input: unknown): { interval: number; maxOverruns: number; batch: number } {
  const given = checked<{ interval: number; maxOverruns: number; batch: number }>((faults) =>
    readDaemon(input, 'daemon() options', faults),
  );
  return { interval: 60_000, maxOverruns: Infinity, batch: 32, ...given };
}

export function readPause(input: unknown): PauseOptions {
  return checked((faults) => readPauseOptions(input, 'pauseSchedule() options', faults));
}

export function readScheduleQuery(input: unknown): ScheduleQueryOptions & { limit: number } {
  return {
    limit: 100,
    ...checked<Required<ScheduleQueryOptions>>((faults) =>
      readQuery(input, 'listSchedules() options', faults),
    ),
  };
}

function anything(value: unknown): unknown {
  return value;
}

/** Milliseconds `handle.wait()` waits; without end by default. */
export function resolveWait(input: unknown): number {
  return checked((faults) => readWait(input, 'wait() options', faults)).timeout ?? Infinity;
}

/** Milliseconds `withLock()` waits for the lock; not at all by default. */
export function resolveWithLock(input: unknown): number {
  return checked((faults) => readWithLock(input, 'withLock() options', faults)).wait ?? 0;
}

/** One job of `dispatchMany`: these three fields and no others. A delay beside them would be lost silently. */
export function checkRequest(input: unknown): void {
  checked((faults) => readRequest(input, 'request', faults));
}

function checked<T extends object>(read: (faults: string[]) => Partial<T> | undefined): Partial<T> {
  const faults: string[] = [];
  const values = read(faults) ?? {};
  if (faults.length > 0) throw optionsError('INVALID_ARGUMENT', faults);
  return values;
}
