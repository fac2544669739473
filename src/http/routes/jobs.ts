import { ChronosError } from '../../domain/errors.js';
import type { JobStatus } from '../../domain/job/job.js';
import type { Scheduler } from '../../scheduler.js';
import { HttpProblem } from '../problem.js';
import { route, type Route } from '../route.js';
import {
  changedJob,
  deadQuery,
  dispatchBody,
  dispatched,
  executionPage,
  executionParams,
  executionQuery,
  executionView,
  explanation,
  jobDetails,
  jobPage,
  jobParams,
  jobQuery,
  reasonBody,
} from '../schemas/jobs.js';
import { emptyRequest, type SchemaOf } from '../schemas/schema.js';

type Action = 'cancel' | 'retry' | 'hold' | 'release';

interface JobAction<B> {
  operationId: string;
  summary: string;
  body: SchemaOf<B>;
  /** Resolves to the outcome. */
  run: (scheduler: Scheduler, id: string, body: B) => Promise<string>;
}

/** A route that changes one job. */
function jobAction<B>(action: Action, { run, ...description }: JobAction<B>): Route {
  return route({
    ...description,
    method: 'POST',
    path: `/jobs/{id}/${action}`,
    params: jobParams,
    response: changedJob,
    problems: [404, 409],
    audit: { before: ({ params: { id } }) => ({ target: id }) },
    handle: async (scheduler, { params: { id }, body }) => ({
      id,
      answer: await run(scheduler, id, body),
    }),
  });
}

export const jobRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/jobs',
    operationId: 'listJobs',
    summary: 'A page of jobs',
    query: jobQuery,
    response: jobPage,
    handle: ({ operations }, { query }) => operations.listJobs({ ...query }),
  }),
  route({
    method: 'POST',
    path: '/jobs',
    operationId: 'dispatchJob',
    summary: 'Dispatch a job',
    body: dispatchBody,
    response: dispatched,
    audit: {
      before: ({ body: { taskType } }) => ({ filter: { taskType } }),
      after: ({ id }) => ({ target: id }),
    },
    handle: async (scheduler, { body: { taskType, payload, ...options } }) => {
      const { id, duplicate } = await scheduler.dispatch(taskType, payload, options);
      return { id, duplicate };
    },
  }),
  route({
    method: 'GET',
    path: '/jobs/{id}',
    operationId: 'showJob',
    summary: 'A job with its payload, result and attempts',
    params: jobParams,
    response: jobDetails,
    problems: [404],
    handle: async ({ operations }, { params: { id } }) => (await operations.showJob(id)) ?? notFound(id),
  }),
  route({
    method: 'GET',
    path: '/jobs/{id}/explanation',
    operationId: 'explainJob',
    summary: 'Why a job does not run, and when it will',
    params: jobParams,
    response: explanation,
    problems: [404],
    handle: async ({ operations }, { params: { id } }) => (await operations.explainJob(id)) ?? notFound(id),
  }),
  jobAction('cancel', {
    operationId: 'cancelJob',
    summary: 'Cancel a waiting job, or ask the worker of a running one to cancel it',
    body: reasonBody,
    run: async (scheduler, id, { reason }) => {
      const result = await scheduler.cancel(id, reason);
      if (result.answer === 'notFound') return notFound(id);
      return result.answer === 'alreadyFinished'
        ? wrongState(id, result.status, 'only jobs that are not finished can be cancelled')
        : result.answer;
    },
  }),
  jobAction('retry', {
    operationId: 'retryJob',
    summary: 'Run a finished job again, as a new one',
    body: emptyRequest,
    run: async (scheduler, id) => {
      const result = await scheduler.retry(id);
      return result.retried ? 'retried' : wrongState(id, result.status, 'only finished jobs can be retried');
    },
  }),
  jobAction('hold', {
    operationId: 'holdJob',
    summary: 'Keep a waiting job from running',
    body: reasonBody,
    run: async (scheduler, id, { reason }) => {
      const result = await scheduler.hold(id, reason);
      return result.changed ? 'held' : wrongState(id, result.status, 'only waiting jobs can be held');
    },
  }),
  jobAction('release', {
    operationId: 'releaseJob',
    summary: 'Let a held job run again',
    body: emptyRequest,
    run: async (scheduler, id) => {
      const result = await scheduler.unhold(id);
      return result.changed ? 'released' : wrongState(id, result.status, 'only held jobs can be released');
    },
  }),
  route({
    method: 'GET',
    path: '/dead',
    operationId: 'listDead',
    summary: 'A page of FAILED jobs, newest first',
    query: deadQuery,
    response: jobPage,
    handle: ({ operations }, { query }) => operations.listDead({ ...query }),
  }),
];

function notFound(id: string): never {
  throw new ChronosError('JOB_NOT_FOUND', `there is no job '${id}'`);
}

function wrongState(id: string, status: JobStatus | null, what: string): never {
  if (status === null) return notFound(id);
  throw new ChronosError('WRONG_STATE', `job '${id}' is ${status}: ${what}`);
}

export const executionRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/executions',
    operationId: 'listExecutions',
    summary: 'A page of attempts, newest first',
    query: executionQuery,
    response: executionPage,
    handle: ({ operations }, { query }) => operations.listExecutions({ ...query }),
  }),
  route({
    method: 'GET',
    path: '/executions/{id}',
    operationId: 'showExecution',
    summary: 'One attempt with its log lines',
    params: executionParams,
    response: executionView,
    problems: [404],
    handle: async ({ operations }, { params: { id } }) => {
      const found = await operations.showExecution(id);
      if (found === null) throw new HttpProblem(404, 'EXECUTION_NOT_FOUND', `there is no attempt '${id}'`);
      return found;
    },
  }),
];
