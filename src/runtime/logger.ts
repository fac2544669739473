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

type Lines = { readonly [E in EventName]: (event: SchedulerEvents[E], log: LogTarget) => void };

/** One line per event. Engine code never logs: it emits events, and this listener writes them. */
const LINES: Lines = {
  'job:start': (event, log) => log.debug(event, `${event.taskType} started`),
  'job:complete': ({ result: _, ...event }, log) =>
    log.info(event, `${event.taskType} completed in ${Math.round(event.duration)} ms`),
  'job:failed': ({ error, ...event }, log) => {
    if (event.willRetry)
      log.warn(
        { ...event, err: error },
        `${event.taskType} failed (attempt ${event.attempt}), next attempt at ${iso(event.nextRunAt)}`,
      );
    else log.error({ ...event, err: error }, `${event.taskType} failed for good (attempt ${event.attempt})`);
  },
  'job:cancelled': (event, log) =>
    log.info(event, `${event.taskType} cancelled: ${event.reason ?? 'no reason given'}`),
  'job:skipped': (event, log) => log.info(event, `${event.taskType} skipped: ${event.reason}`),
  'job:snoozed': (event, log) => log.info(event, `${event.taskType} snoozed until ${iso(event.until)}`),
  'job:givenBack': (event, log) => log.info(event, `${event.taskType} released unfinished`),
  'job:stalled': (event, log) =>
    log.warn(
      event,
      `${event.taskType} recovered: the lock of ${event.lockedBy ?? 'its worker'} expired; it is now ${event.status}`,
    ),
  'job:lockLost': (event, log) => log.warn(event, `${event.taskType} lost its lock, its outcome was dropped`),
  'job:progress': (event, log) =>
    log.debug(
      event,
      `${event.taskType} progress: ${event.value}${event.note === null ? '' : ` (${event.note})`}`,
    ),
  'job:hookFailed': ({ error, ...event }, log) =>
    log.error({ ...event, err: error }, `${event.taskType}: the hook ${event.hook} threw an error`),
  'schedule:due': (event, log) => log.debug(event, `${event.scheduleId} is due`),
  'schedule:skipped': (event, log) => {
    const runs =
      event.count === 1
        ? `the run of ${iso(event.from)}`
        : `${event.count ?? 'many'} runs from ${iso(event.from)} on`;
    const reason =
      event.reason === 'overlap' && event.runningFor !== null
        ? `, the previous one is still running (${seconds(event.runningFor)})`
        : ` (${event.reason})`;
    log.warn(event, `${event.scheduleId}: skipped ${runs}${reason}`);
  },
  'schedule:decided': (event, log) =>
    log.debug(event, `planned ${event.won} schedules, other workers planned ${event.lost} first`),
  'schedule:pushed': (event, log) =>
    log.debug(event, `enqueued ${event.pushed} jobs of schedules, ${event.failed} failed`),
  'schedule:contended': (event, log) =>
    log.debug(event, `other workers planned ${event.lost} of ${event.won + event.lost} schedules first`),
  'schedule:disabled': (event, log) =>
    log.error(event, `the schedule ${event.scheduleId} is disabled: ${event.reason}`),
  'schedule:unreadable': (event, log) =>
    log.error(event, `the schedule ${event.scheduleId} is malformed and ignored: ${event.reason}`),
  'schedule:orphaned': (event, log) =>
    log.warn(
      event,
      `no worker defines the schedule ${event.scheduleId} any more; remove it with: chronos schedules remove ${event.scheduleId}`,
    ),
  'daemon:overrun': (event, log) =>
    log.warn(
      event,
      `tick ${event.tick} ended ${seconds(event.late)} late (${ordinal(event.inARow)} in a row)`,
    ),
  'worker:stuck': (event, log) =>
    log.error(event, `${event.taskType} ignores its abort signal and keeps its slot`),
  'worker:claim': (event, log) => log.debug(event, `claimed ${event.claimed} of ${event.found} due jobs`),
  'worker:renewed': (event, log) => log.debug(event, `renewed ${event.locks} locks`),
  'worker:cycle': (event, log) =>
    log.debug(event, `${event.operation} took ${Math.round(event.duration)} ms`),
  'worker:state': ({ error, ...event }, log) => {
    if (error === undefined) log.info(event, `worker ${event.state.toLowerCase()}`);
    else log.error({ ...event, err: error }, `worker ${event.state.toLowerCase()}`);
  },
  'worker:trouble': ({ error, ...event }, log) => {
    const times = event.failures > 1 ? ` (${ordinal(event.failures)} time)` : '';
    const retry = event.retryIn > 0 ? `, retrying in ${Math.round(event.retryIn)} ms` : '';
    log.warn({ ...event, err: error }, `${event.operation} failed${times}${retry}`);
  },
  'worker:recovered': (event, log) =>
    log.info(event, `${event.operation} succeeded after ${plural(event.failures, 'failure')}`),
  'listener:error': ({ error, ...event }, log) =>
    log.error({ ...event, err: error }, `a listener of ${event.event} threw an error`),
};

/** Writes every event of a scheduler as a structured log line. */
export function attachLogger(scheduler: Observable, log: LogTarget): void {
  for (const name of Object.keys(LINES) as EventName[]) {
    // LINES has the right type for each name; TypeScript loses that in a loop.
    const line = LINES[name] as (event: SchedulerEvents[EventName], log: LogTarget) => void;
    scheduler.on(name, (event) => line(event, log));
  }
}

function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`;
}

/** `1st`, `2nd`, `3rd`, `11th`. */
function ordinal(number: number): string {
  const isTeen = number % 100 >= 11 && number % 100 <= 13;
  return `${number}${(isTeen ? undefined : ['th', 'st', 'nd', 'rd'][number % 10]) ?? 'th'}`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function iso(date: Date | null): string {
  return date?.toISOString() ?? 'an unknown time';
}
