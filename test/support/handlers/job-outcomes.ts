import type { JobView, Scheduler, SchedulerOptions } from '../../../src/index.js';
import type { TestDatabase } from '../database.js';
import { timeAfter } from '../instants.js';
import { manualScheduler } from '../manual-scheduler.js';

const MINUTE = 60_000;

/** Runs one pass and returns the dispatched job. */
export async function runJob(scheduler: Scheduler, dispatched: Promise<{ id: string }>): Promise<JobView> {
  const { id } = await dispatched;
  await scheduler.run();
  return (await scheduler.getJob(id))!;
}

/** Adds a schedule at run time, runs its first occurrence and returns the job. */
export async function runStoredSchedule(
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
