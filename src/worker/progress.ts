import type { Clock } from '../domain/clock.js';
import { ChronosError, toError, withoutCredentials } from '../domain/errors.js';
import type { JobDocument } from '../domain/job.js';
import { cutText } from '../domain/text.js';
import type { EventBus } from '../runtime/event-bus.js';
import { traceFields } from '../runtime/traceparent.js';
import type { Store } from '../store/store.js';
import type { SaveProgress } from './running-job.js';

const LONGEST_NOTE = 1024;

/** Stores how far a job is, fenced. Progress is a courtesy: trouble with it never fails a job, or the process. */
export function progressSaver(
  store: Pick<Store, 'saveProgress'>,
  clock: Clock,
  events: EventBus,
): SaveProgress {
  async function save(job: JobDocument, value: number, note: string | null): Promise<boolean> {
    if (!Number.isFinite(value)) {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `reportProgress() takes a finite number, got ${String(value)}`,
      );
    }
    const progress = {
      value,
      note: note === null ? null : cutText(String(note), LONGEST_NOTE),
      at: clock.now(),
    };
    try {
      const kept = await store.saveProgress(job._id, job.lockToken ?? '', progress);
      if (kept)
        events.emit('job:progress', {
          ...{ jobId: job._id, taskType: job.taskType, ...traceFields(job) },
          ...{ value, note: progress.note },
        });
      return kept;
    } catch (error) {
      const trouble = {
        operation: 'save progress',
        error: withoutCredentials(toError(error)),
        failures: 1,
        retryIn: 0,
      };
      events.emit('worker:trouble', trouble);
      return false;
    }
  }

  return (job, value, note) => {
    const saved = save(job, value, note);
    // A handler that does not await it must not end the process with an unhandled rejection.
    saved.catch(() => undefined);
    return saved;
  };
}
