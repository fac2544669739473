import type { EventName, SchedulerEvents } from '../domain/events.js';
import type { Listener } from './event-bus.js';

/** What `attachLogger` needs of a logger; pino has it. */
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

/** One line per event. The engine never logs: logging is a listener. */
const LINES: Lines = {
  'job:start': (event, log) => log.debug(event, `${event.taskType} started`),
  'job:complete': ({ result: _, ...event }, log) =>
    log.info(event, `${event.taskType} completed in ${Math.round(event.duration)} ms`),
  'job:failed': ({ error, ...event }, log) => {
    if (event.willRetry)
      log.warn(
        { ...event, err: error },
        `${event.taskType} failed (attempt ${event.attempt}), again at ${iso(event.nextRunAt)}`,
      );
    else log.error({ ...event, err: error }, `${event.taskType} failed for good (attempt ${event.attempt})`);
  },
  'job:cancelled': (event, log) =>
    log.info(event, `${event.taskType} cancelled: ${event.reason ?? 'no reason given'}`),
  'job:skipped': (event, log) => log.info(event, `${event.taskType} skipped: ${event.reason}`),
  'job:snoozed': (event, log) => log.info(event, `${event.taskType} snoozed until ${iso(event.until)}`),
  'job:givenBack': (event, log) => log.info(event, `${event.taskType} given back unfinished`),
  'job:stalled': (event, log) =>
    log.warn(
      event,
      `${event.taskType} recovered from ${event.lockedBy ?? 'a worker'}, whose lock expired; now ${event.status}`,
    ),
  'job:lockLost': (event, log) => log.warn(event, `${event.taskType} lost its lock; its outcome is dropped`),
  'job:progress': (event, log) =>
    log.debug(
      event,
      `${event.taskType} is at ${event.value}${event.note === null ? '' : ` (${event.note})`}`,
    ),
  'job:hookFailed': ({ error, ...event }, log) =>
    log.error({ ...event, err: error }, `the hook ${event.hook} of ${event.taskType} threw`),
  'schedule:due': (event, log) => log.debug(event, `${event.scheduleId} is due`),
  'schedule:skipped': (event, log) => {
    const running = event.runningFor === null ? '' : `, still running for ${seconds(event.runningFor)}`;
    log.warn(
      event,
      `${event.scheduleId} skipped ${event.count ?? 'many'} from ${iso(event.from)} on: ${event.reason}${running}`,
    );
  },
  'schedule:decided': (event, log) =>
    log.debug(event, `decided on ${event.won} schedules, ${event.lost} were decided elsewhere`),
  'schedule:pushed': (event, log) =>
    log.debug(event, `put ${event.pushed} jobs of schedules into their queues, ${event.failed} failed`),
  'schedule:contended': (event, log) =>
    log.debug(event, `${event.lost} of ${event.won + event.lost} schedules were decided elsewhere`),
  'schedule:disabled': (event, log) => log.error(event, `${event.scheduleId} is disabled: ${event.reason}`),
  'schedule:unreadable': (event, log) =>
    log.error(event, `the schedule ${event.scheduleId} cannot be read: ${event.reason}`),
  'schedule:orphaned': (event, log) =>
    log.warn(event, `the schedule ${event.scheduleId} is in no code any more; remove it if that is meant`),
  'daemon:overrun': (event, log) =>
    log.warn(event, `tick ${event.tick} ended ${seconds(event.late)} late, ${event.inARow} in a row`),
  'worker:stuck': (event, log) =>
    log.error(event, `${event.taskType} ignores its signal; its slot stays taken`),
  'worker:claim': (event, log) => log.debug(event, `claimed ${event.claimed} of ${event.found} due jobs`),
  'worker:renewed': (event, log) => log.debug(event, `prolonged ${event.locks} locks`),
  'worker:cycle': (event, log) =>
    log.debug(event, `${event.operation}: done in ${Math.round(event.duration)} ms`),
  'worker:state': ({ error, ...event }, log) => {
    if (error === undefined) log.info(event, `worker ${event.state.toLowerCase()}`);
    else log.error({ ...event, err: error }, `worker ${event.state.toLowerCase()}`);
  },
  'worker:trouble': ({ error, ...event }, log) =>
    log.warn({ ...event, err: error }, `cannot ${event.operation}, next try in ${event.retryIn} ms`),
  'worker:recovered': (event, log) =>
    log.info(event, `can ${event.operation} again after ${event.failures} failures`),
  'listener:error': ({ error, ...event }, log) =>
    log.error({ ...event, err: error }, `a listener of ${event.event} threw`),
};

/** Turns every event of a scheduler into a structured line. */
export function attachLogger(scheduler: Observable, log: LogTarget): void {
  for (const name of Object.keys(LINES) as EventName[]) {
    // The table pairs each name with the listener of its own event; the compiler cannot follow that through a loop.
    const line = LINES[name] as (event: SchedulerEvents[EventName], log: LogTarget) => void;
    scheduler.on(name, (event) => line(event, log));
  }
}

function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`;
}

function iso(date: Date | null): string {
  return date?.toISOString() ?? 'an unknown time';
}
