import { ChronosError } from '../../domain/errors.js';
import type { JobStatus } from '../../domain/job.js';
import type { Scheduler } from '../../scheduler.js';
import { route, type Route } from '../route.js';
import {
  changedJob,
  deadQuery,
  dispatchBody,
  dispatched,
  explanation,
  jobDetails,
  jobPage,
  jobQuery,
  reasonBody,
} from '../schemas/jobs.js';
import type { SchemaOf } from '../schemas/schema.js';
import { emptyBody } from '../schemas/system.js';
import { jobParams } from '../schemas/values.js';

type Change = 'cancel' | 'retry' | 'hold' | 'release';

interface ChangeOfOne<B> {
  operationId: string;
  summary: string;
  body: SchemaOf<B>;
  /** What became of the job. */
  change: (scheduler: Scheduler, id: string, body: B) => Promise<string>;
}

/** A change of the one job that the path names. */
function ofOneJob<B>(verb: Change, { change, ...about }: ChangeOfOne<B>): Route {
  return route({
    ...about,
    method: 'POST',
    path: `/jobs/{id}/${verb}`,
    params: jobParams,
    answer: changedJob,
    problems: [404, 409],
    audit: { before: ({ params: { id } }) => ({ target: id }) },
    handle: async (scheduler, { params: { id }, body }) => ({
      id,
      answer: await change(scheduler, id, body),
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
    answer: jobPage,
    handle: ({ operations }, { query }) => operations.listJobs({ ...query }),
  }),
  route({
    method: 'POST',
    path: '/jobs',
    operationId: 'dispatchJob',
    summary: 'Store a job',
    body: dispatchBody,
    answer: dispatched,
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
    answer: jobDetails,
    problems: [404],
    handle: async ({ operations }, { params: { id } }) => (await operations.showJob(id)) ?? missing(id),
  }),
  route({
    method: 'GET',
    path: '/jobs/{id}/explanation',
    operationId: 'explainJob',
    summary: 'Why a job does not run, and when it will',
    params: jobParams,
    answer: explanation,
    problems: [404],
    handle: async ({ operations }, { params: { id } }) => (await operations.explainJob(id)) ?? missing(id),
  }),
  ofOneJob('cancel', {
    operationId: 'cancelJob',
    summary: 'Cancel a job that waits; ask the worker of one that runs',
    body: reasonBody,
    change: async (scheduler, id, { reason }) => {
      const answered = await scheduler.cancel(id, reason);
      if (answered.answer === 'notFound') return missing(id);
      return answered.answer === 'alreadyFinished'
        ? refused(id, answered.status, 'to cancel')
        : answered.answer;
    },
  }),
  ofOneJob('retry', {
    operationId: 'retryJob',
    summary: 'Run a finished job again, as if it were new',
    body: emptyBody,
    change: async (scheduler, id) => {
      const answered = await scheduler.retry(id);
      return answered.retried ? 'retried' : refused(id, answered.status, 'to retry: it is not finished');
    },
  }),
  ofOneJob('hold', {
    operationId: 'holdJob',
    summary: 'Take a waiting job out of play',
    body: reasonBody,
    change: async (scheduler, id, { reason }) => {
      const answered = await scheduler.hold(id, reason);
      return answered.changed ? 'held' : refused(id, answered.status, 'to hold: it does not wait');
    },
  }),
  ofOneJob('release', {
    operationId: 'releaseJob',
    summary: 'Put a held job back into play',
    body: emptyBody,
    change: async (scheduler, id) => {
      const answered = await scheduler.unhold(id);
      return answered.changed ? 'released' : refused(id, answered.status, 'to release: it is not held');
    },
  }),
  route({
    method: 'GET',
    path: '/dead',
    operationId: 'listDead',
    summary: 'A page of jobs that FAILED, the newest first',
    query: deadQuery,
    answer: jobPage,
    handle: ({ operations }, { query }) => operations.listDead({ ...query }),
  }),
];

function missing(id: string): never {
  throw new ChronosError('JOB_NOT_FOUND', `there is no job '${id}'`);
}

function refused(id: string, status: JobStatus | null, what: string): never {
  if (status === null) return missing(id);
  throw new ChronosError('WRONG_STATE', `job '${id}' is ${status}, so that there is nothing ${what}`);
}
