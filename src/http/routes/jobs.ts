import { ChronosError } from '../../domain/errors.js';
import { DELETE_RULE } from '../../domain/job/job.js';
import type { BulkAction } from '../../operations/bulk.js';
import type { Scheduler } from '../../scheduler.js';
import type { JobChange } from '../../store/jobs/change.js';
import { HttpProblem } from '../problem.js';
import { route, type Route } from '../route.js';
import * as schemas from '../schemas/jobs.js';
import { emptyRequest, type SchemaOf } from '../schemas/schema.js';

interface JobAction<B> {
  summary: string;
  body: SchemaOf<B>;
  run: (scheduler: Scheduler, id: string, body: B) => Promise<JobChange>;
  /** Follows "job 'x' is running: ". */
  rule: string;
}

/** A route that changes one job. */
function jobAction<B>(
  name: Exclude<BulkAction, 'delete'> | 'reschedule',
  { summary, body, run, rule }: JobAction<B>,
): Route {
  return route(`POST /jobs/{id}/${name}`, {
    operationId: `${name}Job`,
    summary,
    params: schemas.jobParams,
    body,
    response: schemas.changedJob,
    problems: [404, 409],
    audit: { before: ({ params: { id } }) => ({ target: id }) },
    handle: async (scheduler, { params: { id }, body: request }) => {
      const { result, state } = await run(scheduler, id, request);
      if (result === 'notFound' || state === null) return throwNotFound(id);
      if (result === 'refused') throw new ChronosError('WRONG_STATE', `job '${id}' is ${state}: ${rule}`);
      return { id, result, state };
    },
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
    run: (scheduler, id, { reason }) => scheduler.cancel(id, reason),
    rule: 'only jobs that are not finished can be cancelled',
  }),
  jobAction('retry', {
    summary: 'Run a finished job again, as a new one',
    body: emptyRequest,
    run: (scheduler, id) => scheduler.retry(id),
    rule: 'only finished jobs can be retried',
  }),
  jobAction('hold', {
    summary: 'Keep a waiting job from running',
    body: schemas.reasonBody,
    run: (scheduler, id, { reason }) => scheduler.hold(id, reason),
    rule: 'only waiting, delayed and retrying jobs can be held',
  }),
  jobAction('unhold', {
    summary: 'Let a held job run again',
    body: emptyRequest,
    run: (scheduler, id) => scheduler.unhold(id),
    rule: 'only held jobs can be let run again',
  }),
  jobAction('reschedule', {
    summary: 'Change when a job is due, unless a worker has claimed it',
    body: schemas.rescheduleBody,
    run: (scheduler, id, when) => scheduler.reschedule(id, when),
    rule: 'only jobs that no worker has claimed can be rescheduled',
  }),
  route('DELETE /jobs/{id}', {
    operationId: 'deleteJob',
    summary: 'Delete a finished job and its attempts',
    params: schemas.jobParams,
    response: schemas.deletedJob,
    problems: [404, 409],
    audit: { before: ({ params: { id } }) => ({ target: id }) },
    handle: async (scheduler, { params: { id } }) => {
      const { result, state } = await scheduler.delete(id);
      if (result === 'notFound') return throwNotFound(id);
      if (result === 'refused')
        throw new ChronosError('WRONG_STATE', `job '${id}' is ${state ?? 'unknown'}: ${DELETE_RULE}`);
      return { id };
    },
  }),
  route('GET /dead', {
    operationId: 'listDead',
    summary: 'A page of failed jobs, newest first',
    query: schemas.deadQuery,
    response: schemas.jobPage,
    handle: ({ operations }, { query }) => operations.listDead({ ...query }),
  }),
];

function throwNotFound(id: string): never {
  throw new ChronosError('JOB_NOT_FOUND', `there is no job '${id}'`);
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
