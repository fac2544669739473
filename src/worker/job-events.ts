import type { AttemptEvent, SchedulerEvents } from '../domain/events.js';
import type { JobDocument } from '../domain/job/job.js';
import type { Outcome } from '../domain/job/outcome.js';
import type { Recovery } from '../domain/job/recovery.js';
import { TRANSITIONS } from '../domain/job/transitions.js';
import { assertNever } from '../domain/language.js';
import type { EventBus } from '../runtime/event-bus.js';
import { traceFields } from '../runtime/tracing.js';

/** What every event about an attempt says. */
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

// The two events of every job are written out field by field: spreading costs more than the rest of the announcement.

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

/** Emits the event of an outcome that is stored. */
export function emitOutcome(events: EventBus, job: JobDocument, outcome: Outcome, duration: number): void {
  if (outcome.kind === 'completed') {
    emitCompletion(events, job, outcome.result, duration);
    return;
  }
  const event = toAttemptEvent(job);
  switch (outcome.kind) {
    case 'retry': {
      const { error, nextRunAt } = outcome;
      events.emit('job:failed', { ...event, error, willRetry: true, nextRunAt, duration });
      return;
    }
    case 'failed':
      events.emit('job:failed', {
        ...event,
        error: outcome.error,
        willRetry: false,
        nextRunAt: null,
        duration,
      });
      return;
    case 'cancelled':
      events.emit('job:cancelled', { ...event, reason: outcome.reason });
      return;
    case 'skipped':
      events.emit('job:skipped', { ...event, reason: outcome.reason });
      return;
    case 'snoozed':
      events.emit('job:snoozed', { ...event, until: outcome.until });
      return;
    case 'givenBack':
      events.emit('job:givenBack', event);
      return;
    default:
      assertNever(outcome);
  }
}

/** Announces what the sweep did with a job whose lock expired; `job` as it was before. */
export function emitRecovered(events: EventBus, job: JobDocument, recovery: Recovery, now: Date): void {
  const { _id: jobId, taskType, lockedBy } = job;
  const traced = traceFields(job);
  events.emit('job:stalled', {
    jobId,
    taskType,
    ...traced,
    lockedBy,
    crashes: job.crashes + (job.status === 'RUNNING' ? 1 : 0),
    status: TRANSITIONS[recovery.transition].to,
    nextRunAt: recovery.transition === 'recover' ? recovery.nextRunAt : null,
  });
  if (recovery.transition === 'recoverFailed') {
    const duration = now.getTime() - (job.startedAt ?? now).getTime();
    const { error } = recovery;
    events.emit('job:failed', { ...toAttemptEvent(job), error, willRetry: false, nextRunAt: null, duration });
  }
  if (recovery.transition === 'recoverCancelled') {
    events.emit('job:cancelled', { jobId, taskType, ...traced, reason: job.cancelRequested?.reason ?? null });
  }
}
