import type { FinishedStatus } from './job.js';
import type { SkipReason } from './schedule.js';

interface JobEvent {
  jobId: string;
  taskType: string;
  /** The trace it belongs to; absent when nobody traces. */
  traceId?: string;
}

export interface AttemptEvent extends JobEvent {
  queue: string;
  /** 1 is the first. */
  attempt: number;
  fence: number;
}

export type LifecycleState = 'Stopped' | 'Starting' | 'Running' | 'Stopping' | 'Error';

/** Every event of a Scheduler and what its listeners receive. Job events follow the write they announce. */
export interface SchedulerEvents {
  /** A handler starts, under a lock that is written; `waited` milliseconds after the job was due. */
  'job:start': AttemptEvent & { waited: number };
  /** `duration` in milliseconds; `result` as the handler returned it. */
  'job:complete': AttemptEvent & { result: unknown; duration: number };
  /** Every failed attempt; `willRetry` says whether it was the last, `nextRunAt` when the next one is due. */
  'job:failed': AttemptEvent & { error: Error; willRetry: boolean; nextRunAt: Date | null; duration: number };
  /** Cancelled here: while it waited, by its handler, or by its worker on request. */
  'job:cancelled': JobEvent & { reason: string | null };
  /** A filter of its definition said no: no hook ran, and it counts as no attempt. */
  'job:skipped': AttemptEvent & { reason: string };
  /** The handler asked to run later; it counts as no attempt. */
  'job:snoozed': AttemptEvent & { until: Date };
  /** Returned unfinished because this worker stops; it counts as no attempt. */
  'job:givenBack': AttemptEvent;
  /** Another worker's lock expired and the job was taken from it. */
  'job:stalled': JobEvent & {
    lockedBy: string | null;
    crashes: number;
    status: 'SCHEDULED' | Exclude<FinishedStatus, 'COMPLETED'>;
    nextRunAt: Date | null;
  };
  /** This worker's lock was lost; whatever the handler came to was dropped. */
  'job:lockLost': AttemptEvent;
  /** What the handler reported, once it is stored. */
  'job:progress': JobEvent & { value: number; note: string | null };
  /** A hook threw; the outcome of the attempt stays what it is. */
  'job:hookFailed': AttemptEvent & { hook: string; error: Error };
  /** A handler ignores its aborted signal; its slot stays taken until it ends. */
  'worker:stuck': AttemptEvent & { runningFor: number };
  /** An occurrence became a job here; `late` in milliseconds. */
  'schedule:due': { scheduleId: string; jobId: string; scheduledFor: Date; late: number };
  /** Occurrences from `from` up to `until`, exclusive, were skipped; `runningFor` is how long the run in the way has run. */
  'schedule:skipped': {
    scheduleId: string;
    from: Date;
    until: Date;
    count: number | null;
    reason: SkipReason;
    runningFor: number | null;
  };
  /** Decisions were stored: `won` took effect, others were first with `lost`, and the server refused `refused`. */
  'schedule:decided': { won: number; lost: number; refused: number };
  /** Jobs of schedules that are due were put into their queues; `failed` are tried again. */
  'schedule:pushed': { pushed: number; failed: number };
  /** Other processes decided on these schedules at the same moment, and were first. */
  'schedule:contended': { won: number; lost: number };
  /** Its rule cannot be read: it does not run until it is changed. */
  'schedule:disabled': { scheduleId: string; reason: string };
  /** A stored schedule is no document that can be read; it is left out. `count` since this process started. */
  'schedule:unreadable': { scheduleId: string; reason: string; count: number };
  /** A schedule that was defined in code, and no worker that is alive has it any more. */
  'schedule:orphaned': { scheduleId: string };
  /** A tick of the daemon took longer than its interval; `inARow` since the last one that did not. */
  'daemon:overrun': { tick: number; late: number; inARow: number };
  /** The database was asked for `wanted` due jobs; `found` were read, and `claimed` of them taken. */
  'worker:claim': { wanted: number; found: number; claimed: number };
  /** Locks were prolonged, by one statement. */
  'worker:renewed': { locks: number };
  /** A round of one of the loops, or a pass, went well; `operation` as in `worker:trouble`, `duration` in milliseconds. */
  'worker:cycle': { operation: string; duration: number };
  /** Every change of `scheduler.state`. */
  'worker:state': { state: LifecycleState; previous: LifecycleState; error?: Error };
  /** An operation on MongoDB failed and is tried again; `failures` in a row. */
  'worker:trouble': { operation: string; error: Error; failures: number; retryIn: number };
  /** The operation works again. */
  'worker:recovered': { operation: string; failures: number };
  /** A listener threw, or rejected; the others were called all the same. */
  'listener:error': { event: string; error: Error };
}

export type EventName = keyof SchedulerEvents;

/** At run time too: a typo in a name would be a listener that never hears anything. */
const NAMES: Record<EventName, true> = {
  'job:start': true,
  'job:complete': true,
  'job:failed': true,
  'job:cancelled': true,
  'job:skipped': true,
  'job:snoozed': true,
  'job:givenBack': true,
  'job:stalled': true,
  'job:lockLost': true,
  'job:progress': true,
  'job:hookFailed': true,
  'schedule:due': true,
  'schedule:skipped': true,
  'schedule:decided': true,
  'schedule:pushed': true,
  'schedule:contended': true,
  'schedule:disabled': true,
  'schedule:unreadable': true,
  'schedule:orphaned': true,
  'daemon:overrun': true,
  'worker:stuck': true,
  'worker:claim': true,
  'worker:renewed': true,
  'worker:cycle': true,
  'worker:state': true,
  'worker:trouble': true,
  'worker:recovered': true,
  'listener:error': true,
};

export const EVENT_NAMES = Object.keys(NAMES) as readonly EventName[];
