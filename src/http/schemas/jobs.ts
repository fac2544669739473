import { type DispatchOptions, dispatchShapes } from '../../config/dispatch-options.js';
import { reasonShape, type RescheduleOptions } from '../../config/method-options.js';
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
import { JOB_STATUSES } from '../../domain/job/job.js';
import type { JobState } from '../../domain/job/state.js';
import * as v from '../../domain/validation.js';
import type {
  ExecutionSummary,
  ExecutionView,
  JobDetails,
  JobSummary,
  JobView,
} from '../../jobs/job-views.js';
import type { BulkChange, EmptiedQueue } from '../../operations/bulk.js';
import type { Explanation } from '../../operations/explain/explain.js';
import type { DeadFilter } from '../../operations/operations.js';
import type { Count } from '../../store/jobs/counts.js';
import * as s from './schema.js';

const executionProperties = {
  id: s.string('`<job>:<fence>`'),
  jobId: s.string(),
  taskType: s.string(),
  queue: s.string(),
  attempt: s.number(),
  fence: s.number(),
  workerId: s.string(),
  startedAt: s.date(),
  finishedAt: s.date(),
  duration: s.number('milliseconds'),
  outcome: s.enumOf(...EXECUTION_OUTCOMES),
  error: s.storedError,
  reconstructed: s.boolean('true if the worker died before it recorded the attempt'),
};

const executionSummary = s.response<ExecutionSummary>(executionProperties, ['reconstructed']);
export const executionView = s.response<ExecutionView>({ ...executionProperties, log: s.list(s.string()) }, [
  'reconstructed',
]);
export const executionPage = s.page(executionSummary);

export const executionQuery: s.SchemaOf<ExecutionFilterOptions & PageOptions> = executionQueryShape.schema;
export const executionParams = s.idParam(jobId, '`<job>:<fence>`, percent-encoded');

const jobProperties = {
  id: s.string(),
  taskType: s.string(),
  queue: s.string(),
  priority: s.number('lower is more urgent'),
  state: s.state,
  status: s.enumOf(...JOB_STATUSES),
  nextRunAt: s.date(),
  createdAt: s.date(),
  fence: s.number(),
  attempts: s.number('failed attempts'),
  crashes: s.number(),
  lostWhileQueued: s.number(),
  retries: s.nullable(s.openObject<NonNullable<JobView['retries']>>()),
  timeout: s.nullable(s.number('milliseconds')),
  maxRunningTime: s.nullable(s.number('milliseconds')),
  schedule: s.nullable(s.string('the schedule that created it')),
  scheduledFor: s.nullable(s.date()),
  userId: s.nullable(s.string()),
  tags: s.list(s.string()),
  expiresAt: s.nullable(s.date('a job that has not started by then never starts')),
  keepUntil: s.nullable(s.date('set if the job has its own retention')),
  held: s.nullableObject<JobView['held']>({ reason: s.nullable(s.string()), at: s.date() }),
  skipReason: s.nullable(s.string()),
  cancelRequested: s.nullableObject<JobView['cancelRequested']>({
    reason: s.nullable(s.string()),
    at: s.date(),
  }),
  lockedBy: s.nullable(s.string()),
  lockedUntil: s.nullable(s.date()),
  settledBy: s.nullable(s.string()),
  queuedAt: s.nullable(s.date()),
  firstStartedAt: s.nullable(s.date()),
  startedAt: s.nullable(s.date()),
  finishedAt: s.nullable(s.date()),
  progress: s.nullableObject<JobView['progress']>({
    value: s.number(),
    note: s.nullable(s.string()),
    at: s.date(),
  }),
  resultCut: s.boolean('true: the result was too large; it is the beginning of its JSON text'),
  error: s.storedError,
  trace: s.nullable(s.string('W3C traceparent of the dispatch')),
  invalid: s.nullable(s.string('what is wrong with the stored document')),
};

const jobSummary = s.response<JobSummary>(jobProperties);
const jobView = s.response<JobView>({ ...jobProperties, payload: s.anyValue, result: s.anyValue });
export const jobPage = s.page(jobSummary);
export const jobDetails = s.response<JobDetails>({ job: jobView, executions: s.list(executionView) });

export const explanation = s.response<Explanation>({
  jobId: s.string(),
  state: s.nullable(s.state),
  sentence: s.string('why the job does not run, and when it will'),
  check: s.nullable(s.string('the first check that fails')),
  at: s.nullable(s.date('when that changes, if known')),
  checked: s.objectList<Explanation['checked'][number]>({
    check: s.string(),
    passed: s.boolean(),
    sentence: s.string(),
  }),
});

const { state: _, ...deadFilterShapes } = jobFilterShapes;

export const jobParams = s.idParam(jobId, 'of a job, percent-encoded');
export const jobQuery: s.SchemaOf<JobFilterOptions & PageOptions> = jobQueryShape.schema;
export const deadQuery: s.SchemaOf<DeadFilter & PageOptions> = v.object({
  ...deadFilterShapes,
  ...pageShapes,
}).schema;

/** A change that a client can count first. */
export interface ConfirmedRequest {
  expected?: number;
  dryRun?: boolean;
  reason?: string;
}

export interface BulkRequest<F> extends ConfirmedRequest {
  filter?: F;
  all?: boolean;
}

const confirmShapes = {
  expected: v.described(
    v.integer(0, 10_000),
    'how many jobs a dry run found; if more match now, nothing is changed',
  ),
  dryRun: v.described(v.flag, 'true: only count the jobs that would be changed'),
};

const bulkShapes = {
  all: v.described(v.flag, 'required without a filter: true confirms that the action applies to every job'),
  ...confirmShapes,
};

export const bulkBody: s.SchemaOf<BulkRequest<JobFilterOptions>> = v.object({
  filter: v.object(jobFilterShapes),
  ...bulkShapes,
  reason: reasonShape,
}).schema;
export const deadBody: s.SchemaOf<Omit<BulkRequest<DeadFilter>, 'reason'>> = v.object({
  filter: v.object(deadFilterShapes),
  ...bulkShapes,
}).schema;

/** `outcome` is null for a dry run. */
export interface BulkResult {
  matching: Count;
  outcome: BulkChange | null;
}

const bulkOutcome = {
  matched: s.number(),
  changed: s.number(),
  requested: s.number('how many of the changed jobs are running: their workers were asked to cancel them'),
  refused: s.dictionary(s.number()),
  isAborted: s.boolean('true: the time limit was reached; send the same request again to change the rest'),
};

export const bulkResult = s.response<BulkResult>({
  matching: s.count,
  outcome: s.nullableObject<BulkChange | null>(bulkOutcome),
});

export const queueParams: s.SchemaOf<{ queue: string }> = {
  ...v.object({ queue: v.described(v.name, 'name of a queue, percent-encoded') }).schema,
  required: ['queue'],
};

export const emptyBody: s.SchemaOf<ConfirmedRequest> = v.object({
  ...confirmShapes,
  reason: v.described(reasonShape, 'stored with the jobs that are cancelled'),
}).schema;

export const emptyResult = s.response<{ matching: Count; outcome: EmptiedQueue | null }>({
  matching: s.count,
  outcome: s.nullableObject<EmptiedQueue | null>({
    ...bulkOutcome,
    cancelled: s.number('how many of the changed jobs belong to schedules: they were cancelled, not deleted'),
  }),
});

export interface DispatchBody extends DispatchOptions {
  taskType: string;
  payload?: unknown;
}

export const dispatchBody: s.SchemaOf<DispatchBody> = {
  ...v.object<DispatchBody>({
    taskType: v.name,
    payload: v.described(v.anything, 'passed to the handler'),
    ...dispatchShapes('UTC'),
  }).schema,
  required: ['taskType'],
};

export const dispatched = s.response<{ id: string; duplicate: boolean }>({
  id: s.string(),
  duplicate: s.boolean('true: a job with this key already existed, and `id` is its id'),
});

export const reasonBody: s.SchemaOf<{ reason?: string }> = v.object({ reason: reasonShape }).schema;

export const rescheduleBody: s.SchemaOf<RescheduleOptions> = v.object({
  at: v.instant('UTC'),
  delay: v.duration(),
}).schema;

export interface ChangedJob {
  id: string;
  result: 'changed' | 'requested';
  state: JobState;
}

export const changedJob = s.response<ChangedJob>({
  id: s.string(),
  result: s.enumOf('changed', 'requested'),
  state: s.state,
});

export const deletedJob = s.response<{ id: string }>({ id: s.string() });
