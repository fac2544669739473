import type { AttemptEvent, SchedulerEvents } from '../domain/events.js';
import type { JobDocument } from '../domain/job/job.js';
import type { Outcome } from '../domain/job/outcome.js';
import type { Recovery } from '../domain/job/recovery.js';
import { TRANSITIONS } from '../domain/job/transitions.js';
import { assertNever } from '../domain/language.js';
import type { EventBus } from '../runtime/event-bus.js';
import { traceFields } from '../runtime/tracing.js';

/** The fields of every event about an attempt. */
export function toAttemptEvent(job: JobDocument): AttemptEvent {
  const event: AttemptEvent = {
    jobId: job._id,
    taskType: job.taskType,
    queue: job.queue,
    attempt: job.attempts + 1,
    fence: job.fence,
  };
  const { traceId } = traceFields(job);
  if (traceId !== undefined) event.traceId = traceId;
  return event;
}

// Every job emits these two events, so they are written field by field: a spread costs more than the rest of the emit.

export function emitStart(events: EventBus, job: JobDocument, now: Date): void {
  const event: SchedulerEvents['job:start'] = {
    jobId: job._id,
    taskType: job.taskType,
    queue: job.queue,
    attempt: job.attempts + 1,
    fence: job.fence,
    waited: Math.max(0, now.getTime() - job.nextRunAt.getTime()),
  };
  if (job.trace !== undefined) Object.assign(event, traceFields(job));
  events.emit('job:start', event);
}

function emitCompletion(events: EventBus, job: JobDocument, result: unknown, duration: number): void {
  const event: SchedulerEvents['job:complete'] = {
    jobId: job._id,
    taskType: job.taskType,
    queue: job.queue,
    attempt: job.attempts + 1,
    fence: job.fence,
    result,
    duration,
  };
  if (job.trace !== undefined) Object.assign(event, traceFields(job));
  events.emit('job:complete', event);
}

/** Emits the event of a stored outcome. */
export function emitOutcome(events: EventBus, job: JobDocument, outcome: Outcome, duration: number): void {
  if (outcome.kind === 'completed') return emitCompletion(events, job, outcome.result, duration);
  const event = toAttemptEvent(job);
  switch (outcome.kind) {
    case 'retry':
    case 'failed': {
      const nextRunAt = outcome.kind === 'retry' ? outcome.nextRunAt : null;
      const willRetry = nextRunAt !== null;
      return events.emit('job:failed', { ...event, error: outcome.error, willRetry, nextRunAt, duration });
    }
    case 'cancelled':
      return events.emit('job:cancelled', { ...event, reason: outcome.reason });
    case 'skipped':
      return events.emit('job:skipped', { ...event, reason: outcome.reason });
    case 'expired': {
      const { jobId, taskType, queue, traceId } = event;
      const trace = traceId === undefined ? {} : { traceId };
      return events.emit('job:expired', { jobId, taskType, queue, ...trace, expiresAt: outcome.expiresAt });
    }
    case 'snoozed':
      return events.emit('job:snoozed', { ...event, until: outcome.until });
    case 'released':
      return events.emit('job:released', event);
    default:
      return assertNever(outcome);
  }
}

/** Emits what the sweep did with a job whose lock expired. `job` is the document from before the sweep. */
export function emitRecovered(
  events: EventBus,
  job: JobDocument,
  recovery: Recovery,
  ownerIsGone: boolean,
  now: Date,
): void {
  const { transition } = recovery;
  const event = { jobId: job._id, taskType: job.taskType, ...traceFields(job) };
  const crashes = job.crashes + (ownerIsGone && job.status === 'RUNNING' ? 1 : 0);
  const { to: status } = TRANSITIONS[transition];
  const nextRunAt = transition === 'recover' ? recovery.nextRunAt : null;
  events.emit('job:stalled', { ...event, lockedBy: job.lockedBy, crashes, status, nextRunAt });
  if (transition === 'recoverFailed') {
    const { error } = recovery;
    const duration = now.getTime() - (job.startedAt ?? now).getTime();
    events.emit('job:failed', { ...toAttemptEvent(job), error, willRetry: false, nextRunAt: null, duration });
  }
  if (transition === 'recoverCancelled')
    events.emit('job:cancelled', { ...event, reason: job.cancelRequested?.reason ?? null });
}
