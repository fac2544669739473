import type { FinishedStatus } from './job/job.js';
import type { SkipReason } from './schedule/schedule.js';

interface JobEvent {
  jobId: string;
  taskType: string;
  /** The job's trace, if tracing is on. */
  traceId?: string;
}

export interface AttemptEvent extends JobEvent {
  queue: string;
  /** 1 is the first. */
  attempt: number;
  fence: number;
}

interface OperationTraits {
  /** The label of a failure in metrics, unless the connection was the cause. */
  errorKind?: 'connection' | 'lock' | 'push' | 'cron';
  /** Does not query the database, so success proves nothing about the connection. */
  isLocal?: true;
}

const TRAITS = {
  connect: { errorKind: 'connection' },
  install: {},
  'register schedules': {},
  'claim jobs': {},
  'end invalid job': {},
  'admit waiting jobs': {},
  'release jobs': {},
  'release uncertain claims': {},
  'mark jobs started': {},
  'save progress': {},
  settle: {},
  'write execution log': {},
  'renew locks': { errorKind: 'lock' },
  'check locks': { errorKind: 'lock', isLocal: true },
  'release named lock': { errorKind: 'lock' },
  'poll cancellations': {},
  'watch changes': {},
  'await jobs': {},
  'enqueue schedules': {},
  'plan schedule': { errorKind: 'cron' },
  'disable schedule': { errorKind: 'cron' },
  'insert job': { errorKind: 'push' },
  'record skip': {},
  'run pass': {},
  sweep: {},
  prune: {},
  heartbeat: {},
  'check installation': {},
  'find hanging work': {},
} satisfies Record<string, OperationTraits>;

/** Everything a worker does in the background that can fail. */
export type Operation = keyof typeof TRAITS;
export const OPERATIONS: Readonly<Record<Operation, OperationTraits>> = TRAITS;

/** The state of a Scheduler; `Error` means that it could not start, or that a critical fault ended it. */
export type LifecycleState = 'Stopped' | 'Starting' | 'Running' | 'Stopping' | 'Error';

/** Every event of a Scheduler and what its listeners receive. Job events follow the write they announce. */
export interface SchedulerEvents {
  /** A handler starts; its lock is stored. `waited`: milliseconds since the job was due. */
  'job:start': AttemptEvent & { waited: number };
  /** The handler returned `result`, and the outcome is stored; `duration` in milliseconds. */
  'job:complete': AttemptEvent & { result: unknown; duration: number };
  /** An attempt failed; `willRetry` is true if another one follows, at `nextRunAt`. `duration` in milliseconds. */
  'job:failed': AttemptEvent & { error: Error; willRetry: boolean; nextRunAt: Date | null; duration: number };
  /** The job was cancelled before it ran, by its handler, or on request while it ran. */
  'job:cancelled': JobEvent & { reason: string | null };
  /** A filter skipped the run. No hook ran, and it does not count as an attempt. */
  'job:skipped': AttemptEvent & { reason: string };
  /** The job had not started before it expired; it never starts. */
  'job:expired': JobEvent & { queue: string; expiresAt: Date };
  /** The handler asked to run later. It does not count as an attempt. */
  'job:snoozed': AttemptEvent & { until: Date };
  /** Released unfinished, because this worker is stopping. It does not count as an attempt. */
  'job:released': AttemptEvent;
  /** The lock expired (the worker died, froze or lost its connection), and the job was recovered. */
  'job:stalled': JobEvent & {
    lockedBy: string | null;
    crashes: number;
    status: 'SCHEDULED' | Exclude<FinishedStatus, 'COMPLETED'>;
    nextRunAt: Date | null;
  };
  /** This worker lost its lock; the outcome of the attempt is dropped. */
  'job:lockLost': AttemptEvent;
  /** Progress that the handler reported, after it was stored. */
  'job:progress': JobEvent & { value: number; note: string | null };
  /**
   * A hook threw, or a function of `retries` threw or returned something invalid (`hook` is then `retries.delay` or
   * `retries.if`). The outcome of the attempt is as without it.
   */
  'job:hookFailed': AttemptEvent & { hook: string; error: Error };
  /** A handler ignores its aborted signal and occupies its slot until it ends. */
  'job:stuck': AttemptEvent & { runningFor: number };
  /** A stored job is malformed; it ended FAILED without running. `count`: how many since this process started. */
  'job:invalid': JobEvent & { queue: string; reason: string; count: number };
  /**
   * `running` handlers of this task type run in this process, but none has ended since `since`: many times the usual
   * duration, in milliseconds (null if it is not known).
   */
  'type:hanging': { taskType: string; running: number; since: Date; usualDuration: number | null };
  /** A handler of the task type has ended again, after `hungFor` milliseconds. */
  'type:recovered': { taskType: string; hungFor: number };
  /** A job of the queue has been due since `dueAt`, and no process has finished a job of the queue for five minutes. */
  'queue:hanging': { queue: string; dueAt: Date };
  /** Jobs of the queue are finished again, or none is due any more, after `hungFor` milliseconds. */
  'queue:recovered': { queue: string; hungFor: number };
  /** This worker created the job of an occurrence; `late` in milliseconds. */
  'schedule:due': { scheduleId: string; jobId: string; scheduledFor: Date; late: number };
  /** The occurrences from `from` to before `until` were skipped; `runningFor`: how long the overlapping run has been running; null if it is waiting to start. */
  'schedule:skipped': {
    scheduleId: string;
    from: Date;
    until: Date;
    count: number | null;
    reason: SkipReason;
    runningFor: number | null;
  };
  /** The rule is invalid: the schedule does not run until it is changed. */
  'schedule:disabled': { scheduleId: string; reason: string };
  /** A stored schedule is malformed; it is disabled. `count`: how many since this process started. */
  'schedule:invalid': { scheduleId: string; reason: string; count: number };
  /** No live worker defines this schedule in code any more. */
  'schedule:orphaned': { scheduleId: string };
  /** No live worker serves the queue of this definition and has its handler: its runs wait. */
  'schedule:unserved': { scheduleId: string; queue: string };
  /** A tick of the daemon took longer than its interval, `inARow` times in a row. */
  'daemon:overrun': { tick: number; late: number; inARow: number };
  /** `scheduler.state` changed. */
  'worker:state': { state: LifecycleState; previous: LifecycleState; error?: Error };
  /**
   * `draining`: the worker claims no more jobs. `drained`: nothing is running any more. `undrained`: it claims jobs
   * again.
   */
  'worker:drain': { state: 'draining' | 'drained' | 'undrained' };
  /** An operation failed for the `failures`th time in a row and is retried in `retryIn` milliseconds. `subject`: the id of the job or schedule. */
  'worker:error': {
    operation: Operation;
    subject?: string;
    error: Error;
    failures: number;
    retryIn: number;
  };
  /** The operation succeeded again after `failures` failures. */
  'worker:recovered': { operation: Operation; failures: number };
  /** A listener threw or rejected. The other listeners were called. */
  'listener:error': { event: string; error: Error };
}

/** The name of an event of a Scheduler. */
export type EventName = keyof SchedulerEvents;

/** For the check at run time: a listener with a misspelled event name would never be called. */
const NAMES: Record<EventName, true> = {
  'job:start': true,
  'job:complete': true,
  'job:failed': true,
  'job:cancelled': true,
  'job:skipped': true,
  'job:expired': true,
  'job:snoozed': true,
  'job:released': true,
  'job:stalled': true,
  'job:lockLost': true,
  'job:progress': true,
  'job:hookFailed': true,
  'job:invalid': true,
  'schedule:due': true,
  'schedule:skipped': true,
  'schedule:disabled': true,
  'schedule:invalid': true,
  'schedule:orphaned': true,
  'schedule:unserved': true,
  'daemon:overrun': true,
  'job:stuck': true,
  'type:hanging': true,
  'type:recovered': true,
  'queue:hanging': true,
  'queue:recovered': true,
  'worker:state': true,
  'worker:drain': true,
  'worker:error': true,
  'worker:recovered': true,
  'listener:error': true,
};

export const EVENT_NAMES = Object.keys(NAMES) as readonly EventName[];
