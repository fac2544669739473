import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { CancelAnswer } from '../store/cancel.js';
import type { Store } from '../store/store.js';

export interface CancelParts {
  store: Pick<Store, 'cancel'>;
  clock: Clock;
  events: EventBus;
  /** The handler may be at work in this process: no need to wait until somebody looks. */
  engine: { cancelled(jobId: string, reason: string | null): void };
}

/** Cancels a job that waits; asks the worker of one that runs. */
export async function cancelJob(
  { store, clock, events, engine }: CancelParts,
  jobId: string,
  reason: string | null,
): Promise<CancelAnswer> {
  const answer = await store.cancel(jobId, reason, clock.now());
  if (answer.answer === 'cancelled' || answer.answer === 'requested') engine.cancelled(jobId, reason);
  if (answer.answer === 'cancelled') {
    events.emit('job:cancelled', { jobId, taskType: answer.taskType, reason });
  }
  return answer;
}
