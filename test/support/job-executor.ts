import { resolveOptions, type SchedulerOptions } from '../../src/config/options.js';
import type { HandlerRegistry } from '../../src/handlers/handler-registry.js';
import { EventBus } from '../../src/runtime/event-bus.js';
import type { Store } from '../../src/store/store.js';
import { ProgressReporter } from '../../src/worker/job-context.js';
import { JobExecutor } from '../../src/worker/job-executor.js';
import { aRegistry } from './factories/handler-registry.js';
import { flushEventLoop } from './flush-event-loop.js';
import type { ManualClock } from './manual-clock.js';

const OPTIONS: Partial<SchedulerOptions> = {
  timeout: 10_000,
  timeoutGrace: 500,
  retries: { max: 3, base: 1000, jitter: 'none' },
};

/** An executor with a registry that has no handlers yet. */
export function anExecutor(
  clock: ManualClock,
  saveProgress: Store['saveProgress'] = async () => true,
): { registry: HandlerRegistry; executor: JobExecutor } {
  const registry = aRegistry(OPTIONS);
  const executor = new JobExecutor({
    registry,
    clock,
    options: resolveOptions({ uri: 'mongodb://unused/app', ...OPTIONS }),
    random: () => 0.5,
    progress: new ProgressReporter({ saveProgress }, clock, new EventBus('worker')),
  });
  return { registry, executor };
}

/** The value of the promise if it has resolved by now, else 'pending'. */
export async function currentValue<T>(promise: Promise<T>): Promise<T | 'pending'> {
  await flushEventLoop();
  return Promise.race([promise, Promise.resolve('pending' as const)]);
}

export const never = (): Promise<never> => new Promise(() => undefined);
