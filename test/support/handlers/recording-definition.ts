import type { ChronosError, JobContext, ScheduleBuilder, Scheduler } from '../../../src/index.js';

/** Resolves with the reason when the signal of the job is aborted. */
export function abortReason({ signal }: JobContext): Promise<ChronosError> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(signal.reason as ChronosError));
  });
}

/** A handler that throws when its signal is aborted. */
export async function untilAborted(_: unknown, job: JobContext): Promise<never> {
  throw await abortReason(job);
}

/** A handler or hook that throws. */
export function throwing(thrown: unknown): () => never {
  return () => {
    throw thrown;
  };
}

/** A definition named `work` whose handler and hooks record that they ran. */
export function recordingDefinition(
  scheduler: Scheduler,
  handler: (payload: unknown, job: JobContext) => unknown,
): { work: ScheduleBuilder<unknown>; calls: string[] } {
  const calls: string[] = [];
  const work = scheduler
    .schedule<unknown>('work', (payload, job) => {
      calls.push('handler');
      return handler(payload, job);
    })
    .before(() => calls.push('before'))
    .onSuccess(() => calls.push('onSuccess'))
    .onError(() => calls.push('onError'))
    .after(() => calls.push('after'));
  return { work, calls };
}
