import type { JobView, Scheduler, SchedulerOptions } from '../../../src/index.js';
import type { TestDatabase } from '../database.js';
import { timeAfter } from '../instants.js';
import { manualScheduler } from '../manual-scheduler.js';

const MINUTE = 60_000;

/** The job after one pass. */
export async function outcomeOf(scheduler: Scheduler, dispatched: Promise<{ id: string }>): Promise<JobView> {
  const { id } = await dispatched;
  await scheduler.run();
  return (await scheduler.getJob(id))!;
}

/** The job of the first occurrence of a schedule that is added at run time. */
export async function storedOutcome(
  database: TestDatabase,
  taskType: string,
  payload: unknown,
  options: Partial<SchedulerOptions> = {},
  prepare: (scheduler: Scheduler) => unknown = () => undefined,
): Promise<JobView> {
  const { scheduler, clock } = manualScheduler(database, options);
  prepare(scheduler);
  const id = await scheduler.addSchedule({ taskType, payload, cron: '* * * * *', retries: { max: 1 } });
  clock.advance(MINUTE);
  await scheduler.run();
  return (await scheduler.getJob(`${id}@${timeAfter(MINUTE).toISOString()}`))!;
}
