import { assertNever } from '../domain/assert-never.js';
import type { AttemptEvent, SchedulerEvents } from '../domain/events.js';
import type { JobDocument } from '../domain/job.js';
import type { Outcome } from '../domain/outcome.js';
import type { EventBus } from '../runtime/event-bus.js';
import { traceFields } from '../runtime/traceparent.js';

/** What every event about an attempt says. */
export function attemptOf(job: JobDocument): AttemptEvent {
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

/** Tells that a handler starts. */
export function announceStart(events: EventBus, job: JobDocument, now: Date): void {
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

function announceCompletion(events: EventBus, job: JobDocument, result: unknown, duration: number): void {
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

/** Tells of an outcome that is written. */
export function announce(events: EventBus, job: JobDocument, outcome: Outcome, duration: number): void {
  if (outcome.kind === 'completed') {
    announceCompletion(events, job, outcome.result, duration);
    return;
  }
  const event = attemptOf(job);
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
