import { ChronosError } from '../../domain/errors.js';
import type { AuditDetails } from '../../operations/audited.js';
import type { Scheduler } from '../../scheduler.js';
import type { StoredSchedule } from '../../schedules/schedule-view.js';
import { route, type Asked, type Route } from '../route.js';
import { reasonBody } from '../schemas/jobs.js';
import { scheduleBody, schedulePatch } from '../schemas/new-schedule.js';
import {
  backfillBody,
  backfilled,
  changedSchedule,
  differences,
  preview,
  previewQuery,
  schedulePage,
  scheduleQuery,
  scheduleView,
  skipQuery,
  skips,
  triggered,
} from '../schemas/schedules.js';
import { emptyBody } from '../schemas/system.js';
import { scheduleParams } from '../schemas/values.js';

const DEFAULT_PAGE = 20;
const PREVIEWED = 5;

const ofOne = {
  before: ({ params: { id } }: Asked<{ id: string }, unknown, unknown>): AuditDetails => ({ target: id }),
};

export const scheduleRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/schedules',
    operationId: 'listSchedules',
    summary: 'A page of schedules, in the order of their ids',
    query: scheduleQuery,
    answer: schedulePage,
    handle: (scheduler, { query }) =>
      scheduler.pageSchedules({ ...query, limit: query.limit ?? DEFAULT_PAGE }),
  }),
  route({
    method: 'POST',
    path: '/schedules',
    operationId: 'addSchedule',
    summary: 'Store a schedule',
    body: scheduleBody,
    answer: changedSchedule,
    status: 201,
    problems: [409],
    audit: {
      before: ({ body: { id, taskType } }) => ({
        ...(id !== undefined && { target: id }),
        filter: { taskType },
      }),
      after: ({ id }) => ({ target: id }),
    },
    handle: async (scheduler, { body }) => ({ id: await scheduler.addSchedule(body) }),
  }),
  route({
    method: 'GET',
    path: '/schedules/{id}',
    operationId: 'showSchedule',
    summary: 'A schedule',
    params: scheduleParams,
    answer: scheduleView,
    problems: [404],
    handle: (scheduler, { params: { id } }) => find(scheduler, id),
  }),
  route({
    method: 'PATCH',
    path: '/schedules/{id}',
    operationId: 'updateSchedule',
    summary: 'Change a stored schedule; null takes something back',
    params: scheduleParams,
    body: schedulePatch,
    answer: changedSchedule,
    problems: [404, 409],
    audit: ofOne,
    handle: async (scheduler, { params: { id }, body }) =>
      changed(id, await scheduler.updateSchedule(id, body)),
  }),
  route({
    method: 'DELETE',
    path: '/schedules/{id}',
    operationId: 'removeSchedule',
    summary: 'Remove a schedule; jobs it has made stay',
    params: scheduleParams,
    answer: changedSchedule,
    problems: [404],
    audit: ofOne,
    handle: async (scheduler, { params: { id } }) => changed(id, await scheduler.removeSchedule(id)),
  }),
  route({
    method: 'GET',
    path: '/schedules/{id}/preview',
    operationId: 'previewSchedule',
    summary: 'The next times of a schedule, whether it is active or not',
    params: scheduleParams,
    query: previewQuery,
    answer: preview,
    problems: [404],
    handle: async (scheduler, { params: { id }, query: { count = PREVIEWED, from } }) => ({
      id,
      nextRuns: (await find(scheduler, id)).nextRuns(count, from),
    }),
  }),
  route({
    method: 'GET',
    path: '/schedules/{id}/skips',
    operationId: 'listSkips',
    summary: 'Occurrences that did not become jobs, the last first',
    params: scheduleParams,
    query: skipQuery,
    answer: skips,
    problems: [404],
    handle: async (scheduler, { params: { id }, query: { limit = DEFAULT_PAGE } }) => {
      await find(scheduler, id);
      return { skips: await scheduler.getSkips(id, limit) };
    },
  }),
  route({
    method: 'POST',
    path: '/schedules/{id}/pause',
    operationId: 'pauseSchedule',
    summary: 'No more occurrences until it is resumed; also for schedules in code',
    params: scheduleParams,
    body: reasonBody,
    answer: changedSchedule,
    problems: [404],
    audit: ofOne,
    handle: async (scheduler, { params: { id }, body: { reason } }, { who }) =>
      changed(id, await scheduler.pauseSchedule(id, { by: who, ...(reason !== undefined && { reason }) })),
  }),
  route({
    method: 'POST',
    path: '/schedules/{id}/resume',
    operationId: 'resumeSchedule',
    summary: 'Go on from now; what was due meanwhile is recorded as skipped',
    params: scheduleParams,
    body: emptyBody,
    answer: changedSchedule,
    problems: [404],
    audit: ofOne,
    handle: async (scheduler, { params: { id } }) => changed(id, await scheduler.resumeSchedule(id)),
  }),
  route({
    method: 'POST',
    path: '/schedules/{id}/trigger',
    operationId: 'triggerSchedule',
    summary: 'Run it once now, besides its occurrences',
    params: scheduleParams,
    body: emptyBody,
    answer: triggered,
    problems: [404, 409],
    audit: ofOne,
    handle: async (scheduler, { params: { id } }) => {
      const answered = await scheduler.triggerSchedule(id);
      if (answered.triggered) return { jobId: answered.jobId };
      if (answered.reason === 'notFound') return missing(id);
      throw new ChronosError(
        'WRONG_STATE',
        `the run '${answered.jobId}' of schedule '${id}' is not finished after ${answered.runningFor} ms, and its runs must not overlap`,
      );
    },
  }),
  route({
    method: 'POST',
    path: '/schedules/{id}/backfill',
    operationId: 'backfillSchedule',
    summary: 'Make the jobs of past occurrences that have none, from one instant to another',
    params: scheduleParams,
    body: backfillBody,
    answer: backfilled,
    problems: [404],
    audit: {
      before: ({ params: { id }, body: { from, to } }) => ({ target: id, filter: { from, to } }),
      after: ({ occurrences, existing }) => ({ counts: { occurrences, existing } }),
    },
    handle: (scheduler, { params: { id }, body: { from, to } }) => scheduler.backfill(id, from, to),
  }),
  route({
    method: 'GET',
    path: '/schedule-differences',
    operationId: 'diffSchedules',
    summary: 'How the definitions in the code of this worker and what is stored compare',
    answer: differences,
    handle: async ({ operations }) => ({ differences: await operations.diffSchedules() }),
  }),
];

async function find(scheduler: Scheduler, id: string): Promise<StoredSchedule> {
  return (await scheduler.getSchedule(id)) ?? missing(id);
}

function changed(id: string, isFound: boolean): { id: string } {
  return isFound ? { id } : missing(id);
}

function missing(id: string): never {
  throw new ChronosError('SCHEDULE_NOT_FOUND', `there is no schedule '${id}'`);
}
