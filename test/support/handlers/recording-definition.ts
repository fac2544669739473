import type { JobContext, ScheduleBuilder, Scheduler } from '../../../src/index.js';

/** A handler that ends when its signal is aborted. */
export function untilAborted(_: unknown, { signal: aborting }: JobContext): Promise<never> {
  return new Promise((_resolve, reject) => {
    aborting.addEventListener('abort', () => reject(aborting.reason as Error));
  });
}

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
