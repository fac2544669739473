import type { DispatchOptions } from '../../config/dispatch-options.js';
import type { RetryOptions } from '../../config/retry-options.js';
import { LONGEST_JOB_ID } from '../../domain/names.js';
import type { JobFilterOptions, PageOptions } from '../../config/query-options.js';
import type { JobView } from '../../dispatch/job-view.js';
import type { BulkAnswer } from '../../operations/bulk.js';
import type { Explanation } from '../../operations/explain.js';
import type { JobPage } from '../../operations/lists.js';
import type { JobDetails, JobSummary } from '../../operations/views.js';
import { executionView } from './executions.js';
import {
  amount,
  answer,
  anything,
  date,
  dictionary,
  flag,
  free,
  input,
  integer,
  list,
  nullable,
  oneOf,
  shown,
  text,
} from './schema.js';
import {
  count,
  cursor,
  duration,
  instant,
  limit,
  name,
  next,
  reason,
  status,
  storedError,
} from './values.js';

const summaryProperties = {
  id: shown(),
  taskType: shown(),
  queue: shown(),
  priority: amount('lower is more urgent'),
  status,
  nextRunAt: date(),
  createdAt: date(),
  fence: amount(),
  attempts: amount('failed verdicts'),
  crashes: amount(),
  abandoned: amount(),
  retries: nullable(free<NonNullable<JobView['retries']>>()),
  timeout: nullable(amount('milliseconds')),
  maxRunningTime: nullable(amount('milliseconds')),
  schedule: nullable(shown('the schedule that made it')),
  scheduledFor: nullable(date()),
  userId: nullable(shown()),
  held: nullable(answer<NonNullable<JobView['held']>>({ reason: nullable(shown()), at: date() })),
  skipReason: nullable(shown()),
  cancelRequested: nullable(
    answer<NonNullable<JobView['cancelRequested']>>({ reason: nullable(shown()), at: date() }),
  ),
  lockedBy: nullable(shown()),
  lockedUntil: nullable(date()),
  settledBy: nullable(shown()),
  queuedAt: nullable(date()),
  firstStartedAt: nullable(date()),
  startedAt: nullable(date()),
  finishedAt: nullable(date()),
  progress: nullable(
    answer<NonNullable<JobView['progress']>>({ value: amount(), note: nullable(shown()), at: date() }),
  ),
  resultCut: flag('true when the result is only the first part of its JSON text'),
  error: storedError,
  trace: shown('W3C traceparent of the dispatch'),
};

export const jobSummary = answer<JobSummary>(summaryProperties, ['trace']);
export const jobView = answer<JobView>({ ...summaryProperties, payload: anything(), result: anything() }, [
  'trace',
]);
export const jobPage = answer<JobPage>({ jobs: list(jobSummary), next });
export const jobDetails = answer<JobDetails>({ job: jobView, executions: list(executionView) });

export const explanation = answer<Explanation>({
  jobId: shown(),
  status: nullable(status),
  sentence: shown('why it does not run, and when it will'),
  gate: nullable(shown('what keeps it from running')),
  at: nullable(date('when that changes')),
  checked: list(answer<Explanation['checked'][number]>({ gate: shown(), passed: flag(), sentence: shown() })),
});

const filterProperties = {
  queue: name,
  taskType: name,
  schedule: name,
  userId: name,
  idPrefix: text(LONGEST_JOB_ID, 'what their ids begin with'),
};

export type DeadFilter = Omit<JobFilterOptions, 'status'>;

export const jobQuery = input<JobFilterOptions & PageOptions>({
  status,
  ...filterProperties,
  limit,
  after: cursor,
});
export const deadQuery = input<DeadFilter & PageOptions>({ ...filterProperties, limit, after: cursor });

/** A change of many jobs. */
export interface BulkRequest<F> {
  filter?: F;
  all?: boolean;
  expected?: number;
  dryRun?: boolean;
  reason?: string;
}

const bulkProperties = {
  all: flag('true is needed where the filter is left out: every job the action is for'),
  expected: integer(0, 10_000, 'how many a dry run found; when there are more by now, nothing is changed'),
  dryRun: flag('true: only say how many it would touch'),
};

export const bulkBody = input<BulkRequest<JobFilterOptions>>({
  filter: input<JobFilterOptions>({ status, ...filterProperties }),
  ...bulkProperties,
  reason,
});
export const deadBody = input<Omit<BulkRequest<DeadFilter>, 'reason'>>({
  filter: input<DeadFilter>(filterProperties),
  ...bulkProperties,
});

/** What would be touched, and what was; the second is null for a dry run. */
export interface BulkResult {
  matching: { count: number; atLeast: boolean };
  outcome: BulkAnswer | null;
}

export const bulkResult = answer<BulkResult>({
  matching: count,
  outcome: nullable(
    answer<BulkAnswer>({
      matched: amount(),
      changed: amount(),
      requested: amount('of the changed: jobs that run, and whose worker was asked'),
      refused: dictionary(amount()),
      isAborted: flag('true when time was up before all were done: the same request goes on with the rest'),
    }),
  ),
});

export interface DispatchBody extends DispatchOptions {
  taskType: string;
  payload?: unknown;
  at?: string;
}

export const retries = input<RetryOptions>({
  max: integer(1, 1_000_000, 'attempts in all'),
  base: duration,
  cap: duration,
  jitter: oneOf('full', 'none'),
});

export const dispatchBody = input<DispatchBody>(
  {
    taskType: name,
    payload: anything('handed to the handler'),
    delay: duration,
    at: instant,
    priority: integer(0, 1000, 'lower is more urgent; default 100'),
    queue: name,
    key: text(500, 'becomes part of the id: the same key twice gives the job that is there'),
    retries,
    timeout: duration,
    maxRunningTime: duration,
    hold: flag('true: it waits until it is released'),
  },
  ['taskType'],
);

export const dispatched = answer<{ id: string; duplicate: boolean }>({
  id: shown(),
  duplicate: flag('true when the key was taken: this is the job that was there'),
});

export const reasonBody = input<{ reason?: string }>({ reason });
export const changedJob = answer<{ id: string; answer: string }>({
  id: shown(),
  answer: shown(
    'what was done: `cancelled`, `requested` (it runs; its worker was asked), `retried`, `held`, `released`',
  ),
});
