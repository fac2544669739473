import { assertNever } from '../domain/assert-never.js';
import type { AttemptEvent } from '../domain/events.js';
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

/** Tells of an outcome that is written. */
export function announce(events: EventBus, job: JobDocument, outcome: Outcome, duration: number): void {
  const event = attemptOf(job);
  switch (outcome.kind) {
    case 'completed':
      events.emit('job:complete', { ...event, result: outcome.result, duration });
      return;
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
