import { ChronosError } from '../../domain/errors.js';
import type { JobStatus } from '../../domain/job/job.js';
import type { BulkAction } from '../../operations/bulk.js';
import type { Scheduler } from '../../scheduler.js';
import { HttpProblem } from '../problem.js';
import { route, type Route } from '../route.js';
import * as schemas from '../schemas/jobs.js';
import { emptyRequest, type SchemaOf } from '../schemas/schema.js';

interface JobAction<B> {
  summary: string;
  body: SchemaOf<B>;
  /** Resolves to `answer` of the response. */
  run: (scheduler: Scheduler, id: string, body: B) => Promise<string>;
}

/** A route that changes one job. */
function jobAction<B>(action: BulkAction, { summary, body, run }: JobAction<B>): Route {
  return route(`POST /jobs/{id}/${action}`, {
    operationId: `${action}Job`,
    summary,
    params: schemas.jobParams,
    body,
    response: schemas.changedJob,
    problems: [404, 409],
    audit: { before: ({ params: { id } }) => ({ target: id }) },
    handle: async (scheduler, { params: { id }, body: request }) => ({
      id,
      answer: await run(scheduler, id, request),
    }),
  });
}

export const jobRoutes: readonly Route[] = [
  route('GET /jobs', {
    operationId: 'listJobs',
    summary: 'A page of jobs',
    query: schemas.jobQuery,
    response: schemas.jobPage,
    handle: ({ operations }, { query }) => operations.listJobs({ ...query }),
  }),
  route('POST /jobs', {
    operationId: 'dispatchJob',
    summary: 'Dispatch a job',
    body: schemas.dispatchBody,
    response: schemas.dispatched,
    audit: {
      before: ({ body: { taskType } }) => ({ filter: { taskType } }),
      after: ({ id }) => ({ target: id }),
    },
    handle: async (scheduler, { body: { taskType, payload, ...options } }) => {
      const { id, duplicate } = await scheduler.dispatch(taskType, payload, options);
      return { id, duplicate };
    },
  }),
  route('GET /jobs/{id}', {
    operationId: 'showJob',
    summary: 'A job with its payload, result and attempts',
    params: schemas.jobParams,
    response: schemas.jobDetails,
    problems: [404],
    handle: async ({ operations }, { params: { id } }) => (await operations.showJob(id)) ?? throwNotFound(id),
  }),
  route('GET /jobs/{id}/explanation', {
    operationId: 'explainJob',
    summary: 'Why a job does not run, and when it will',
    params: schemas.jobParams,
    response: schemas.explanation,
    problems: [404],
    handle: async ({ operations }, { params: { id } }) =>
      (await operations.explainJob(id)) ?? throwNotFound(id),
  }),
  jobAction('cancel', {
    summary: 'Cancel a waiting job, or ask the worker of a running one to cancel it',
    body: schemas.reasonBody,
    run: async (scheduler, id, { reason }) => {
      const result = await scheduler.cancel(id, reason);
      if (result.answer === 'notFound') return throwNotFound(id);
      return result.answer === 'alreadyFinished'
        ? throwWrongState(id, result.status, 'only jobs that are not finished can be cancelled')
        : result.answer;
    },
  }),
  jobAction('retry', {
    summary: 'Run a finished job again, as a new one',
    body: emptyRequest,
    run: async (scheduler, id) => {
      const result = await scheduler.retry(id);
      return result.retried
        ? 'retried'
        : throwWrongState(id, result.status, 'only finished jobs can be retried');
    },
  }),
  jobAction('hold', {
    summary: 'Keep a waiting job from running',
    body: schemas.reasonBody,
    run: async (scheduler, id, { reason }) => {
      const result = await scheduler.hold(id, reason);
      return result.changed ? 'held' : throwWrongState(id, result.status, 'only waiting jobs can be held');
    },
  }),
  jobAction('release', {
    summary: 'Let a held job run again',
    body: emptyRequest,
    run: async (scheduler, id) => {
      const result = await scheduler.unhold(id);
      return result.changed
        ? 'released'
        : throwWrongState(id, result.status, 'only held jobs can be released');
    },
  }),
  route('GET /dead', {
    operationId: 'listDead',
    summary: 'A page of FAILED jobs, newest first',
    query: schemas.deadQuery,
    response: schemas.jobPage,
    handle: ({ operations }, { query }) => operations.listDead({ ...query }),
  }),
];

function throwNotFound(id: string): never {
  throw new ChronosError('JOB_NOT_FOUND', `there is no job '${id}'`);
}

function throwWrongState(id: string, status: JobStatus | null, rule: string): never {
  if (status === null) return throwNotFound(id);
  throw new ChronosError('WRONG_STATE', `job '${id}' is ${status}: ${rule}`);
}

export const executionRoutes: readonly Route[] = [
  route('GET /executions', {
    operationId: 'listExecutions',
    summary: 'A page of attempts, newest first',
    query: schemas.executionQuery,
    response: schemas.executionPage,
    handle: ({ operations }, { query }) => operations.listExecutions({ ...query }),
  }),
  route('GET /executions/{id}', {
    operationId: 'showExecution',
    summary: 'One attempt with its log lines',
    params: schemas.executionParams,
    response: schemas.executionView,
    problems: [404],
    handle: async ({ operations }, { params: { id } }) => {
      const found = await operations.showExecution(id);
      if (found === null) throw new HttpProblem(404, 'EXECUTION_NOT_FOUND', `there is no attempt '${id}'`);
      return found;
    },
  }),
];
