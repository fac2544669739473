import { type DispatchOptions, dispatchShapes } from '../../config/dispatch-options.js';
import { reasonShape } from '../../config/method-options.js';
import {
  type ExecutionFilterOptions,
  executionQueryShape,
  jobId,
  type JobFilterOptions,
  jobFilterShapes,
  jobQueryShape,
  type PageOptions,
  pageShapes,
} from '../../config/query-options.js';
import { EXECUTION_OUTCOMES } from '../../domain/job/execution.js';
import { anything, described, flag, integer, name, object } from '../../domain/validation.js';
import type {
  ExecutionSummary,
  ExecutionView,
  JobDetails,
  JobSummary,
  JobView,
} from '../../jobs/job-views.js';
import type { BulkAnswer } from '../../operations/bulk.js';
import type { Explanation } from '../../operations/explain/explain.js';
import type { ExecutionPage, JobPage } from '../../operations/lists.js';
import {
  anyValue,
  boolean,
  count,
  date,
  dictionary,
  enumOf,
  idParam,
  list,
  next,
  nullable,
  number,
  openObject,
  response,
  type SchemaOf,
  status,
  storedError,
  string,
} from './schema.js';

const outcome = enumOf(...EXECUTION_OUTCOMES);

const executionProperties = {
  id: string('`<job>:<fence>`'),
  jobId: string(),
  taskType: string(),
  queue: string(),
  attempt: number(),
  fence: number(),
  workerId: string(),
  startedAt: date(),
  finishedAt: date(),
  duration: number('milliseconds'),
  outcome,
  error: storedError,
};

export const executionSummary = response<ExecutionSummary>(executionProperties);
export const executionView = response<ExecutionView>({ ...executionProperties, log: list(string()) });
export const executionPage = response<ExecutionPage>({ executions: list(executionSummary), next });

export const executionQuery: SchemaOf<ExecutionFilterOptions & PageOptions> = executionQueryShape.schema;
export const executionParams = idParam(jobId, '`<job>:<fence>`, percent-encoded');

const jobProperties = {
  id: string(),
  taskType: string(),
  queue: string(),
  priority: number('lower is more urgent'),
  status,
  nextRunAt: date(),
  createdAt: date(),
  fence: number(),
  attempts: number('failed attempts'),
  crashes: number(),
  abandoned: number(),
  retries: nullable(openObject<NonNullable<JobView['retries']>>()),
  timeout: nullable(number('milliseconds')),
  maxRunningTime: nullable(number('milliseconds')),
  schedule: nullable(string('the schedule that created it')),
  scheduledFor: nullable(date()),
  userId: nullable(string()),
  held: nullable(response<NonNullable<JobView['held']>>({ reason: nullable(string()), at: date() })),
  skipReason: nullable(string()),
  cancelRequested: nullable(
    response<NonNullable<JobView['cancelRequested']>>({ reason: nullable(string()), at: date() }),
  ),
  lockedBy: nullable(string()),
  lockedUntil: nullable(date()),
  settledBy: nullable(string()),
  queuedAt: nullable(date()),
  firstStartedAt: nullable(date()),
  startedAt: nullable(date()),
  finishedAt: nullable(date()),
  progress: nullable(
    response<NonNullable<JobView['progress']>>({ value: number(), note: nullable(string()), at: date() }),
  ),
  resultCut: boolean('true: the result is only the first part of its JSON text'),
  error: storedError,
  trace: string('W3C traceparent of the dispatch'),
};

export const jobSummary = response<JobSummary>(jobProperties, ['trace']);
export const jobView = response<JobView>({ ...jobProperties, payload: anyValue, result: anyValue }, [
  'trace',
]);
export const jobPage = response<JobPage>({ jobs: list(jobSummary), next });
export const jobDetails = response<JobDetails>({ job: jobView, executions: list(executionView) });

export const explanation = response<Explanation>({
  jobId: string(),
  status: nullable(status),
  sentence: string('why it does not run, and when it will'),
  gate: nullable(string('the check that keeps it from running')),
  at: nullable(date('when that changes')),
  checked: list(
    response<Explanation['checked'][number]>({ gate: string(), passed: boolean(), sentence: string() }),
  ),
});

export type DeadFilter = Omit<JobFilterOptions, 'status'>;

const { status: _, ...deadFilterShapes } = jobFilterShapes;

export const jobParams = idParam(jobId, 'of a job, percent-encoded');
export const jobQuery: SchemaOf<JobFilterOptions & PageOptions> = jobQueryShape.schema;
export const deadQuery: SchemaOf<DeadFilter & PageOptions> = object({
  ...deadFilterShapes,
  ...pageShapes,
}).schema;

/** A change of many jobs. */
export interface BulkRequest<F> {
  filter?: F;
  all?: boolean;
  expected?: number;
  dryRun?: boolean;
  reason?: string;
}

const bulkShapes = {
  all: described(flag, 'must be true if the filter is left out: the action applies to every job then'),
  expected: described(
    integer(0, 10_000),
    'how many jobs a dry run found; if there are more by now, nothing is changed',
  ),
  dryRun: described(flag, 'true: only count the jobs that would be changed'),
};

export const bulkBody: SchemaOf<BulkRequest<JobFilterOptions>> = object({
  filter: object(jobFilterShapes),
  ...bulkShapes,
  reason: reasonShape,
}).schema;
export const deadBody: SchemaOf<Omit<BulkRequest<DeadFilter>, 'reason'>> = object({
  filter: object(deadFilterShapes),
  ...bulkShapes,
}).schema;

/** The jobs that match, and what was changed; `outcome` is null for a dry run. */
export interface BulkResult {
  matching: { count: number; atLeast: boolean };
  outcome: BulkAnswer | null;
}

export const bulkResult = response<BulkResult>({
  matching: count,
  outcome: nullable(
    response<BulkAnswer>({
      matched: number(),
      changed: number(),
      requested: number('how many of the changed jobs are running: their worker was asked to cancel them'),
      refused: dictionary(number()),
      isAborted: boolean('true: the time limit was reached first; send the same request again for the rest'),
    }),
  ),
});

export interface DispatchBody extends DispatchOptions {
  taskType: string;
  payload?: unknown;
}

export const dispatchBody: SchemaOf<DispatchBody> = {
  ...object<DispatchBody>({
    taskType: name,
    payload: described(anything, 'passed to the handler'),
    ...dispatchShapes('UTC'),
  }).schema,
  required: ['taskType'],
};

export const dispatched = response<{ id: string; duplicate: boolean }>({
  id: string(),
  duplicate: boolean('true: a job with this key existed; this is its id'),
});

export const reasonBody: SchemaOf<{ reason?: string }> = object({ reason: reasonShape }).schema;
export const changedJob = response<{ id: string; answer: string }>({
  id: string(),
  answer: string(
    'what was done: `cancelled`, `requested` (it is running; its worker was asked), `retried`, `held`, `released`',
  ),
});
