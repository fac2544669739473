import type { JobDocument } from '../../src/domain/job/job.js';
import { DEFAULTS } from '../../src/config/options.js';
import { EventBus } from '../../src/runtime/event-bus.js';
import type { DefinitionSync } from '../../src/schedules/enqueue/definition-sync.js';
import { MalformedSchedules } from '../../src/schedules/enqueue/malformed-schedules.js';
import { PlanExecutor } from '../../src/schedules/enqueue/plan-executor.js';
import { PlanningLock } from '../../src/schedules/enqueue/planning-lock.js';
import { ScheduleEnqueuer } from '../../src/schedules/enqueue/schedule-enqueuer.js';
import { SchedulePlanner } from '../../src/schedules/enqueue/schedule-planner.js';
import type { Store } from '../../src/store/store.js';
import type { TestDatabase } from './database.js';
import { START, timeAfter } from './instants.js';
import type { ManualClock } from './manual-clock.js';
import { loadOutcomes, type OccurrenceOutcome } from './occurrence-outcomes.js';

const HOUR = 3_600_000;

/** After this long, any process executes a plan that the process that stored it has not executed. */
export const TAKEOVER_MS = 2000;

/** The id of the job for an hourly occurrence of the schedule `s`, counted from START. */
export function hourlyJobId(hour: number): string {
  return `s@${timeAfter(hour * HOUR).toISOString()}`;
}

/** The jobs of a schedule, oldest occurrence first. */
export function jobsOf({ collections }: TestDatabase, schedule: string): Promise<JobDocument[]> {
  return collections.jobs.find({ schedule }, { sort: { _id: 1 } }).toArray();
}

export async function jobIdsOf(database: TestDatabase, schedule: string): Promise<string[]> {
  return (await jobsOf(database, schedule)).map(({ _id }) => _id);
}

/** The outcome of every occurrence after START. */
export function outcomesUntil(
  { stored }: TestDatabase,
  until: Date,
  scheduleId = 's',
): Promise<OccurrenceOutcome[]> {
  return loadOutcomes(stored, scheduleId, { after: START, until });
}

/** The schedule enqueuer of one process, without a worker that would run the jobs. */
export function createEnqueuer(
  store: Store,
  clock: ManualClock,
  events = new EventBus('worker'),
): ScheduleEnqueuer {
  const options = { environment: 'test', pollInterval: 5000, retention: DEFAULTS.retention };
  const deps = { clock, events, store, random: () => 0, options };
  return new ScheduleEnqueuer({
    ...deps,
    planner: new SchedulePlanner(deps),
    executor: new PlanExecutor({
      ...deps,
      jobs: { cancel: (jobId, reason = '') => store.cancel(jobId, reason, clock.now()) },
      engine: { wake: () => undefined },
    }),
    definitionSync: { names: [] } as unknown as DefinitionSync,
    malformed: new MalformedSchedules(deps),
    planningLock: new PlanningLock({ clock, store, workerId: 'me' }),
    changes: { intervalMultiplier: 1 },
  });
}
