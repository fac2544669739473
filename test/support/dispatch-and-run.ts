import type { DispatchOptions, Scheduler } from '../../src/index.js';
import { nextEvent } from './events.js';

/** Dispatches a job and starts a pass. Resolves when the handler of the job has started. */
export async function dispatchAndRun(
  scheduler: Scheduler,
  taskType: string,
  options: DispatchOptions = {},
): Promise<{ id: string; pass: Promise<number> }> {
  const started = nextEvent(scheduler, 'job:start');
  const { id } = await scheduler.dispatch(taskType, null, options);
  const pass = scheduler.run();
  await started;
  return { id, pass };
}
