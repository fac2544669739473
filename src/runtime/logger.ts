import type { EventName, SchedulerEvents } from '../domain/events.js';
import type { Listener } from './event-bus.js';

/** The part of a logger that `attachLogger` uses; pino has it. */
export interface LogTarget {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

interface Observable {
  on<E extends EventName>(name: E, listener: Listener<E>): unknown;
}

type Line = readonly [level: keyof LogTarget, message: string];

/** One line per event. Engine code never logs: it emits events, and this listener writes them. */
const LINES: { readonly [E in EventName]: (event: SchedulerEvents[E]) => Line } = {
  'job:start': ({ taskType }) => ['debug', `${taskType} started`],
  'job:complete': ({ taskType, duration }) => ['info', `${taskType} completed in ${Math.round(duration)} ms`],
  'job:failed': ({ taskType, attempt, willRetry, nextRunAt }) =>
    willRetry
      ? ['warn', `${taskType} failed (attempt ${attempt}), next attempt at ${iso(nextRunAt)}`]
      : ['error', `${taskType} failed for good (attempt ${attempt})`],
  'job:cancelled': ({ taskType, reason }) => [
    'info',
    `${taskType} cancelled: ${reason ?? 'no reason given'}`,
  ],
  'job:skipped': ({ taskType, reason }) => ['info', `${taskType} skipped: ${reason}`],
  'job:expired': ({ taskType, expiresAt }) => [
    'warn',
    `${taskType} expired at ${iso(expiresAt)} without having started`,
  ],
  'job:snoozed': ({ taskType, until }) => ['info', `${taskType} snoozed until ${iso(until)}`],
  'job:released': ({ taskType }) => ['info', `${taskType} released unfinished`],
  'job:stalled': ({ taskType, lockedBy, status }) => [
    'warn',
    `${taskType} recovered: the lock of ${lockedBy ?? 'its worker'} expired; it is now ${status}`,
  ],
  'job:lockLost': ({ taskType }) => ['warn', `${taskType} lost its lock, its outcome was dropped`],
  'job:progress': ({ taskType, value, note }) => [
    'debug',
    `${taskType} progress: ${value}${note === null ? '' : ` (${note})`}`,
  ],
  'job:hookFailed': ({ taskType, hook }) => ['error', `${taskType}: the hook ${hook} failed`],
  'schedule:due': ({ scheduleId }) => ['debug', `${scheduleId} is due`],
  'schedule:skipped': ({ scheduleId, count, from, reason, runningFor }) => {
    const runs = count === 1 ? `the run of ${iso(from)}` : `${count ?? 'many'} runs from ${iso(from)} on`;
    const why =
      reason === 'overlap' && runningFor !== null
        ? `, the previous one is still running (${seconds(runningFor)})`
        : ` (${reason})`;
    return ['warn', `${scheduleId}: skipped ${runs}${why}`];
  },
  'schedule:disabled': ({ scheduleId, reason }) => [
    'error',
    `the schedule ${scheduleId} is disabled: ${reason}`,
  ],
  'schedule:invalid': ({ scheduleId, reason }) => [
    'error',
    `the schedule ${scheduleId} is malformed and ignored: ${reason}`,
  ],
  'schedule:orphaned': ({ scheduleId }) => [
    'warn',
    `no worker defines the schedule ${scheduleId} any more; remove it with: chronos schedules remove ${scheduleId}`,
  ],
  'daemon:overrun': ({ tick, late, inARow }) => [
    'warn',
    `tick ${tick} ended ${seconds(late)} late (${ordinal(inARow)} in a row)`,
  ],
  'job:stuck': ({ taskType }) => ['error', `${taskType} ignores its abort signal and keeps its slot`],
  'worker:state': ({ state, error }) => [
    error === undefined ? 'info' : 'error',
    `worker ${state.toLowerCase()}`,
  ],
  'worker:error': ({ operation, failures, retryIn }) => {
    const times = failures > 1 ? ` (${ordinal(failures)} time)` : '';
    const retry = retryIn > 0 ? `, retrying in ${Math.round(retryIn)} ms` : '';
    return ['warn', `${operation} failed${times}${retry}`];
  },
  'worker:recovered': ({ operation, failures }) => [
    'info',
    `${operation} succeeded after ${failures} failure${failures === 1 ? '' : 's'}`,
  ],
  'listener:error': ({ event }) => ['error', `a listener of ${event} threw an error`],
};

/** Writes every event of a scheduler as a structured log line. */
export function attachLogger(scheduler: Observable, log: LogTarget): void {
  for (const name of Object.keys(LINES) as EventName[]) {
    // LINES has the right type for each name; TypeScript loses that in a loop.
    const toLine = LINES[name] as (event: SchedulerEvents[EventName]) => Line;
    scheduler.on(name, (event) => {
      const [level, message] = toLine(event);
      log[level](toFields(event), message);
    });
  }
}

/** Loggers expect errors as `err`. Results are left out: they are stored with the job and may be secret or large. */
function toFields(event: object): object {
  const { error, result: _, ...fields } = event as { error?: Error; result?: unknown };
  return error === undefined ? fields : { ...fields, err: error };
}

function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`;
}

/** `1st`, `2nd`, `3rd`, `11th`. */
function ordinal(number: number): string {
  const isTeen = number % 100 >= 11 && number % 100 <= 13;
  return `${number}${(isTeen ? undefined : ['th', 'st', 'nd', 'rd'][number % 10]) ?? 'th'}`;
}

function iso(date: Date | null): string {
  return date?.toISOString() ?? 'an unknown time';
}
