import { DEFAULT_PAGE } from '../../config/query-options.js';
import { ChronosError } from '../../domain/errors.js';
import type { AuditDetails } from '../../operations/audit.js';
import type { Scheduler } from '../../scheduler.js';
import type { StoredSchedule } from '../../schedules/stored/stored-schedules.js';
import { type RouteInput, route, type Route } from '../route.js';
import { reasonBody } from '../schemas/jobs.js';
import {
  backfillBody,
  backfilled,
  changedSchedule,
  differences,
  preview,
  previewQuery,
  scheduleBody,
  schedulePage,
  scheduleParams,
  schedulePatch,
  scheduleQuery,
  scheduleView,
  skipQuery,
  skips,
  triggered,
} from '../schemas/schedules.js';
import { emptyRequest } from '../schemas/schema.js';

const DEFAULT_PREVIEW = 5;

const targetAudit = {
  before: ({ params: { id } }: RouteInput<{ id: string }, unknown, unknown>): AuditDetails => ({
    target: id,
  }),
};

export const scheduleRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/schedules',
    operationId: 'listSchedules',
    summary: 'A page of schedules, ordered by id',
    query: scheduleQuery,
    response: schedulePage,
    handle: (scheduler, { query }) =>
      scheduler.pageSchedules({ ...query, limit: query.limit ?? DEFAULT_PAGE }),
  }),
  route({
    method: 'POST',
    path: '/schedules',
    operationId: 'addSchedule',
    summary: 'Add a schedule',
    body: scheduleBody,
    response: changedSchedule,
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
    response: scheduleView,
    problems: [404],
    handle: (scheduler, { params: { id } }) => find(scheduler, id),
  }),
  route({
    method: 'PATCH',
    path: '/schedules/{id}',
    operationId: 'updateSchedule',
    summary: 'Change a stored schedule; null removes an option',
    params: scheduleParams,
    body: schedulePatch,
    response: changedSchedule,
    problems: [404, 409],
    audit: targetAudit,
    handle: async (scheduler, { params: { id }, body }) =>
      changed(id, await scheduler.updateSchedule(id, body)),
  }),
  route({
    method: 'DELETE',
    path: '/schedules/{id}',
    operationId: 'removeSchedule',
    summary: 'Remove a schedule; its jobs stay',
    params: scheduleParams,
    response: changedSchedule,
    problems: [404],
    audit: targetAudit,
    handle: async (scheduler, { params: { id } }) => changed(id, await scheduler.removeSchedule(id)),
  }),
  route({
    method: 'GET',
    path: '/schedules/{id}/preview',
    operationId: 'previewSchedule',
    summary: 'The next runs of a schedule, whether it is active or not',
    params: scheduleParams,
    query: previewQuery,
    response: preview,
    problems: [404],
    handle: async (scheduler, { params: { id }, query: { count = DEFAULT_PREVIEW, from } }) => ({
      id,
      nextRuns: (await find(scheduler, id)).nextRuns(count, from),
    }),
  }),
  route({
    method: 'GET',
    path: '/schedules/{id}/skips',
    operationId: 'listSkips',
    summary: 'Occurrences that did not become jobs, latest first',
    params: scheduleParams,
    query: skipQuery,
    response: skips,
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
    summary: 'Pause a schedule until it is resumed; also for schedules in code',
    params: scheduleParams,
    body: reasonBody,
    response: changedSchedule,
    problems: [404],
    audit: targetAudit,
    handle: async (scheduler, { params: { id }, body: { reason } }, { who }) =>
      changed(id, await scheduler.pauseSchedule(id, { by: who, ...(reason !== undefined && { reason }) })),
  }),
  route({
    method: 'POST',
    path: '/schedules/{id}/resume',
    operationId: 'resumeSchedule',
    summary: 'Resume from now; runs that were due meanwhile are recorded as skipped',
    params: scheduleParams,
    body: emptyRequest,
    response: changedSchedule,
    problems: [404],
    audit: targetAudit,
    handle: async (scheduler, { params: { id } }) => changed(id, await scheduler.resumeSchedule(id)),
  }),
  route({
    method: 'POST',
    path: '/schedules/{id}/trigger',
    operationId: 'triggerSchedule',
    summary: 'Run it once now, in addition to its occurrences',
    params: scheduleParams,
    body: emptyRequest,
    response: triggered,
    problems: [404, 409],
    audit: targetAudit,
    handle: async (scheduler, { params: { id } }) => {
      const result = await scheduler.triggerSchedule(id);
      if (result.triggered) return { jobId: result.jobId };
      if (result.reason === 'notFound') return notFound(id);
      throw new ChronosError(
        'WRONG_STATE',
        `the run '${result.jobId}' of schedule '${id}' is still active after ${result.runningFor} ms, and its runs must not overlap`,
      );
    },
  }),
  route({
    method: 'POST',
    path: '/schedules/{id}/backfill',
    operationId: 'backfillSchedule',
    summary: 'Create the missing jobs of past occurrences between two instants',
    params: scheduleParams,
    body: backfillBody,
    response: backfilled,
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
    summary: 'Differences between the definitions in the code of this worker and the stored schedules',
    response: differences,
    handle: async ({ operations }) => ({ differences: await operations.diffSchedules() }),
  }),
];

async function find(scheduler: Scheduler, id: string): Promise<StoredSchedule> {
  return (await scheduler.getSchedule(id)) ?? notFound(id);
}

function changed(id: string, isFound: boolean): { id: string } {
  return isFound ? { id } : notFound(id);
}

function notFound(id: string): never {
  throw new ChronosError('SCHEDULE_NOT_FOUND', `there is no schedule '${id}'`);
}
