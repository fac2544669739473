import type { ScheduleQueryOptions } from '../../config/call-options.js';
import type { MisfireOptions } from '../../config/schedule-options.js';
import { MISFIRES, OVERLAPS, type SkipDocument } from '../../domain/schedule.js';
import type { ScheduleDifference, DefinitionView } from '../../operations/definitions.js';
import type { StoredSchedule } from '../../schedules/schedule-view.js';
import {
  amount,
  answer,
  anything,
  date,
  flag,
  free,
  integer,
  input,
  list,
  nullable,
  oneOf,
  shown,
} from './schema.js';
import { instant, limit, name } from './values.js';

/** As it is sent: without the function that tells its next runs. */
export type ScheduleAnswer = Omit<StoredSchedule, 'nextRuns'>;
export type SkipAnswer = Omit<SkipDocument, '_id' | 'scheduleId' | 'expiresAt'>;

const definitionProperties = {
  taskType: shown(),
  rule: nullable(free<NonNullable<ScheduleAnswer['rule']>>('as it is stored; null: only when triggered')),
  payload: anything(),
  queue: nullable(shown()),
  priority: amount(),
  retries: nullable(free<NonNullable<ScheduleAnswer['retries']>>()),
  timeout: nullable(amount('milliseconds')),
  maxRunningTime: nullable(amount('milliseconds')),
  misfire: answer<Required<MisfireOptions> & { within: number }>({
    policy: oneOf(...MISFIRES),
    within: amount('milliseconds'),
    cap: amount(),
  }),
  overlap: oneOf(...OVERLAPS),
  jitter: amount('milliseconds'),
  maxRuns: nullable(amount()),
  enabled: flag(),
  environments: list(shown()),
  userId: nullable(shown()),
};

const pause = nullable(
  answer<NonNullable<ScheduleAnswer['paused']>>({
    at: date(),
    by: nullable(shown()),
    reason: nullable(shown()),
  }),
);

export const scheduleView = answer<ScheduleAnswer>({
  id: shown(),
  ...definitionProperties,
  owner: oneOf('code', 'api'),
  rev: amount(),
  isActive: flag(),
  paused: pause,
  disabledReason: nullable(shown()),
  anchor: date(),
  nextRunAt: nullable(date()),
  lastRunAt: nullable(date()),
  active: nullable(shown('the job of the current run')),
  runs: amount(),
  createdAt: date(),
  updatedAt: date(),
  waiting: amount('runs that are decided and wait for the one before them'),
});

export interface SchedulePage {
  schedules: ScheduleAnswer[];
  next: string | null;
}

export const schedulePage = answer<SchedulePage>({
  schedules: list(scheduleView),
  next: nullable(shown('`after` of the next page; null when this is the last')),
});

export const scheduleQuery = input<ScheduleQueryOptions>({
  owner: oneOf('code', 'api'),
  userId: name,
  taskType: name,
  isActive: flag(),
  after: name,
  limit,
});

export const previewQuery = input<{ count?: number; from?: string }>({
  count: integer(1, 200, 'default 5'),
  from: instant,
});
export const preview = answer<{ id: string; nextRuns: Date[] }>({ id: shown(), nextRuns: list(date()) });

export const skipQuery = input<{ limit?: number }>({ limit });
export const skips = answer<{ skips: SkipAnswer[] }>({
  skips: list(
    answer<SkipAnswer>({
      at: date('the first occurrence that was skipped'),
      until: date('those before this one'),
      count: nullable(amount()),
      reason: oneOf('misfire', 'overlap', 'backlog', 'replaced', 'paused', 'changed'),
      activeId: nullable(shown('the run that was in the way')),
      runningFor: nullable(amount('milliseconds')),
      since: date(),
    }),
  ),
});

export const changedSchedule = answer<{ id: string }>({ id: shown() });
export const triggered = answer<{ jobId: string }>({ jobId: shown() });
export const backfillBody = input<{ from: string; to: string }>({ from: instant, to: instant }, [
  'from',
  'to',
]);
export const backfilled = answer<{ occurrences: number; existing: number }>({
  occurrences: amount(),
  existing: amount('of these: those that had a job already'),
});

export const differences = answer<{ differences: ScheduleDifference[] }>({
  differences: list(
    answer<ScheduleDifference>({
      name: shown(),
      state: oneOf('same', 'new', 'changed', 'orphaned', 'taken'),
      changes: list(
        answer<ScheduleDifference['changes'][number]>({
          field: shown(),
          code: anything(),
          stored: anything(),
        }),
      ),
    }),
  ),
});

export const definitions = answer<{ definitions: DefinitionView[] }>({
  definitions: list(
    answer<DefinitionView>({
      name: shown(),
      runs: answer<DefinitionView['runs']>({ kind: shown(), label: shown() }),
      ...definitionProperties,
      dependsOn: list(shown()),
      isServed: flag(),
      hasHandler: flag(),
      stored: nullable(
        answer<NonNullable<DefinitionView['stored']>>({
          isActive: flag(),
          paused: pause,
          disabledReason: nullable(shown()),
          nextRunAt: nullable(date()),
          lastRunAt: nullable(date()),
        }),
      ),
      nextRuns: list(date()),
    }),
  ),
});
