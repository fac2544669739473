import { redactCredentials, toError } from '../domain/errors.js';
import type { EventName, SchedulerEvents } from '../domain/events.js';
import { isThenable, tryOr } from '../domain/language.js';
import type { Logger, LogLevel } from '../domain/logger.js';
import { printable } from '../domain/text.js';
import type { Listener } from './event-bus.js';

interface Observable {
  on<E extends EventName>(name: E, listener: Listener<E>): unknown;
}

interface Line<T> {
  /** A level, or how it depends on the event. */
  readonly level: LogLevel | ((event: T) => LogLevel);
  readonly text: (event: T) => string;
}

const DRAIN_LINES = {
  draining: 'worker draining, it claims no more jobs',
  drained: 'worker drained, nothing is running any more',
  undrained: 'worker undrained, it claims jobs again',
} as const;

/** One line per event. Engine code never logs: it emits events, and this listener writes them. */
const LINES: { readonly [E in EventName]: Line<SchedulerEvents[E]> } = {
  'job:start': { level: 'debug', text: ({ taskType }) => `${taskType} started` },
  'job:complete': {
    level: 'info',
    text: ({ taskType, duration }) => `${taskType} completed in ${Math.round(duration)} ms`,
  },
  'job:failed': {
    level: ({ willRetry }) => (willRetry ? 'warn' : 'error'),
    text: ({ taskType, attempt, willRetry, nextRunAt }) =>
      willRetry
        ? `${taskType} failed (attempt ${attempt}), next attempt at ${iso(nextRunAt)}`
        : `${taskType} failed for good (attempt ${attempt})`,
  },
  'job:cancelled': {
    level: 'info',
    text: ({ taskType, reason }) => `${taskType} cancelled: ${reason ?? 'no reason given'}`,
  },
  'job:skipped': { level: 'info', text: ({ taskType, reason }) => `${taskType} skipped: ${reason}` },
  'job:expired': {
    level: 'warn',
    text: ({ taskType, expiresAt }) => `${taskType} expired at ${iso(expiresAt)} without having started`,
  },
  'job:snoozed': { level: 'info', text: ({ taskType, until }) => `${taskType} snoozed until ${iso(until)}` },
  'job:released': { level: 'info', text: ({ taskType }) => `${taskType} released unfinished` },
  'job:stalled': {
    level: 'warn',
    text: ({ taskType, lockedBy, status }) =>
      `${taskType} recovered: the lock of ${lockedBy ?? 'its worker'} expired; it is now ${status}`,
  },
  'job:lockLost': {
    level: 'warn',
    text: ({ taskType }) => `${taskType} lost its lock, its outcome was dropped`,
  },
  'job:progress': {
    level: 'debug',
    text: ({ taskType, value, note }) => `${taskType} progress: ${value}${note === null ? '' : ` (${note})`}`,
  },
  'job:hookFailed': {
    level: 'error',
    text: ({ taskType, hook }) => `${taskType}: the hook ${hook} failed`,
  },
  'job:stuck': {
    level: 'error',
    text: ({ taskType }) => `${taskType} ignores its abort signal and keeps its slot`,
  },
  'type:hanging': {
    level: 'warn',
    text: ({ taskType, running, since, usualDuration }) => {
      const usual = usualDuration === null ? '' : `, usually one takes ${milliseconds(usualDuration)}`;
      return `jobs of ${taskType} hang: ${running} running, none has ended since ${iso(since)}${usual}; find out what its handlers wait for, and list the jobs with: chronos jobs list --state running --type ${taskType}`;
    },
  },
  'type:recovered': {
    level: 'info',
    text: ({ taskType, hungFor }) => `jobs of ${taskType} end again, after they hung for ${seconds(hungFor)}`,
  },
  'queue:hanging': {
    level: 'warn',
    text: ({ queue, dueAt }) =>
      `the queue ${queue} hangs: a job has been due since ${iso(dueAt)} and none was finished for five minutes; find out why with: chronos doctor`,
  },
  'queue:recovered': {
    level: 'info',
    text: ({ queue, hungFor }) =>
      `jobs of the queue ${queue} are finished again, after it hung for ${seconds(hungFor)}`,
  },
  'schedule:due': { level: 'debug', text: ({ scheduleId }) => `${scheduleId} is due` },
  'schedule:skipped': {
    level: 'warn',
    text: ({ scheduleId, count, from, reason, runningFor }) => {
      const runs = count === 1 ? `the run of ${iso(from)}` : `${count ?? 'many'} runs from ${iso(from)} on`;
      const why =
        reason !== 'overlap'
          ? ` (${reason})`
          : runningFor === null
            ? ', the previous one is waiting to start'
            : `, the previous one is still running (${seconds(runningFor)})`;
      return `${scheduleId}: skipped ${runs}${why}`;
    },
  },
  'job:invalid': {
    level: 'error',
    text: ({ jobId, reason }) => `the stored job ${jobId} is malformed and was ended as FAILED: ${reason}`,
  },
  'schedule:disabled': {
    level: 'error',
    text: ({ scheduleId, reason }) => `the schedule ${scheduleId} is disabled: ${reason}`,
  },
  'schedule:invalid': {
    level: 'error',
    text: ({ scheduleId, reason }) => `the schedule ${scheduleId} is malformed and was disabled: ${reason}`,
  },
  'schedule:orphaned': {
    level: 'warn',
    text: ({ scheduleId }) =>
      `no worker defines the schedule ${scheduleId} any more; remove it with: chronos schedules remove ${scheduleId}`,
  },
  'schedule:unserved': {
    level: 'warn',
    text: ({ scheduleId, queue }) =>
      `no live worker both serves the queue ${queue} and has the handler of the schedule ${scheduleId}: its runs wait; start one that does`,
  },
  'daemon:overrun': {
    level: 'warn',
    text: ({ tick, late, inARow }) =>
      `tick ${tick} ended ${seconds(late)} late (${ordinal(inARow)} in a row)`,
  },
  'worker:state': {
    level: ({ error }) => (error === undefined ? 'info' : 'error'),
    text: ({ state }) => `worker ${state.toLowerCase()}`,
  },
  'worker:drain': { level: 'info', text: ({ state }) => DRAIN_LINES[state] },
  'worker:error': {
    level: 'warn',
    text: ({ operation, failures, retryIn }) => {
      const times = failures > 1 ? ` (${ordinal(failures)} time)` : '';
      const retry = retryIn > 0 ? `, retrying in ${Math.round(retryIn)} ms` : '';
      return `${operation} failed${times}${retry}`;
    },
  },
  'worker:recovered': {
    level: 'info',
    text: ({ operation, failures }) =>
      `${operation} succeeded after ${failures} failure${failures === 1 ? '' : 's'}`,
  },
  'listener:error': { level: 'error', text: ({ event }) => `a listener of ${event} threw an error` },
};

/**
 * Writes the events of a scheduler to its logger, one structured line each. Without a logger they are written to the
 * console, as readable lines, from level warn up. A logger that throws does not affect the worker.
 */
export function attachLogger(events: Observable, logger: Logger | false | undefined): void {
  if (logger === false) return;
  const toConsole = logger === undefined || logger === console;
  const write = toConsole ? writeToConsole : guardedWrite(logger);
  for (const name of Object.keys(LINES) as EventName[]) {
    // LINES has the right type for each name; TypeScript loses that in a loop.
    const { level, text } = LINES[name] as Line<SchedulerEvents[EventName]>;
    // Without a listener, events of each job cost nothing.
    if (toConsole && (level === 'debug' || level === 'info')) continue;
    events.on(name, (event) =>
      write(typeof level === 'string' ? level : level(event), toFields(event), text(event)),
    );
  }
}

type Write = (level: LogLevel, fields: LogFields, message: string) => void;

/** The first error of a logger is reported on the console; the logger is still called. */
function guardedWrite(logger: Logger): Write {
  let isReported = false;
  const report = (error: unknown): void => {
    if (isReported) return;
    isReported = true;
    const message = 'the logger threw an error; further errors of it are not shown';
    writeToConsole('error', { err: toError(error) }, message);
  };
  return (level, fields, message) => {
    try {
      // A logger may be asynchronous, whatever its type says.
      const returned: unknown = logger[level](fields, message);
      if (isThenable(returned)) returned.then(undefined, report);
    } catch (error) {
      report(error);
    }
  };
}

function writeToConsole(level: LogLevel, fields: LogFields, message: string): void {
  if (level !== 'warn' && level !== 'error') return;
  const line = `chronos: ${formatLine(message, fields)}`;
  // The stack tells where a job failed for good; a job that is retried gets one line.
  const frames = level === 'error' ? stackFrames(fields.err) : [];
  console[level]([line, ...frames].join('\n'));
}

/**
 * A line for people: the message, the message of the error and the id of the job or schedule. Stored values and error messages may
 * contain control characters, so the line is made printable.
 */
export function formatLine(message: string, { err, jobId, subject = jobId }: LogFields): string {
  const reason = tryOr(() => (err as { message?: unknown } | undefined)?.message, undefined);
  const error = typeof reason === 'string' && reason !== '' ? `: ${redactCredentials(reason)}` : '';
  return printable(`${message}${error}${typeof subject === 'string' ? `  [${subject}]` : ''}`);
}

function stackFrames(error: unknown): string[] {
  const stack = tryOr(() => (error as { stack?: unknown } | undefined)?.stack, undefined);
  if (typeof stack !== 'string') return [];
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .map((line) => printable(redactCredentials(line)));
}

interface LogFields {
  err?: unknown;
  jobId?: unknown;
  subject?: unknown;
}

/** Loggers expect errors as `err`. Results are left out: they are stored with the job and may be secret or large. */
function toFields(event: object): LogFields {
  const { error, result: _, ...fields } = event as { error?: Error; result?: unknown };
  return error === undefined ? fields : { ...fields, err: error };
}

function milliseconds(duration: number): string {
  return duration < 1000 ? `${Math.round(duration)} ms` : seconds(duration);
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
