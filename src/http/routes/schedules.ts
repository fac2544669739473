import { ChronosError } from '../../domain/errors.js';
import type { AuditDetails } from '../../operations/audit.js';
import type { Scheduler } from '../../scheduler.js';
import type { StoredSchedule } from '../../schedules/stored/stored-schedules.js';
import { type RouteInput, route, type Route } from '../route.js';
import { reasonBody } from '../schemas/jobs.js';
import * as schemas from '../schemas/schedules.js';
import { emptyRequest } from '../schemas/schema.js';

const DEFAULT_PREVIEW = 5;

const ONE_SCHEDULE = { params: schemas.scheduleParams, problems: [404] };
const CHANGE_SCHEDULE = {
  ...ONE_SCHEDULE,
  response: schemas.changedSchedule,
  audit: {
    before: ({ params: { id } }: RouteInput<{ id: string }, unknown, unknown>): AuditDetails => ({
      target: id,
    }),
  },
};

export const scheduleRoutes: readonly Route[] = [
  route('GET /schedules', {
    operationId: 'listSchedules',
    summary: 'A page of schedules, ordered by id',
    query: schemas.scheduleQuery,
    response: schemas.schedulePage,
    handle: (scheduler, { query }) => scheduler.listSchedules({ ...query }),
  }),
  route('POST /schedules', {
    operationId: 'addSchedule',
    summary: 'Add a schedule',
    body: schemas.scheduleBody,
    response: schemas.changedSchedule,
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
  route('GET /schedules/{id}', {
    ...ONE_SCHEDULE,
    operationId: 'showSchedule',
    summary: 'A schedule',
    response: schemas.scheduleView,
    handle: (scheduler, { params: { id } }) => find(scheduler, id),
  }),
  route('PUT /schedules/{id}', {
    ...CHANGE_SCHEDULE,
    operationId: 'upsertSchedule',
    summary: 'Add a schedule, or change its whole definition; it stays paused if it is paused',
    body: schemas.scheduleUpsert,
    response: schemas.upserted,
    problems: [409],
    audit: {
      before: ({ params: { id }, body: { taskType } }) => ({ target: id, filter: { taskType } }),
    },
    handle: (scheduler, { params: { id }, body }) => scheduler.upsertSchedule({ ...body, id }),
  }),
  route('PATCH /schedules/{id}', {
    ...CHANGE_SCHEDULE,
    operationId: 'updateSchedule',
    summary: 'Change a stored schedule; null removes an option',
    body: schemas.schedulePatch,
    problems: [404, 409],
    handle: async (scheduler, { params: { id }, body }) =>
      changed(id, await scheduler.updateSchedule(id, body)),
  }),
  route('DELETE /schedules/{id}', {
    ...CHANGE_SCHEDULE,
    operationId: 'removeSchedule',
    summary: 'Remove a schedule; its jobs stay',
    handle: async (scheduler, { params: { id } }) => changed(id, await scheduler.removeSchedule(id)),
  }),
  route('GET /schedules/{id}/preview', {
    ...ONE_SCHEDULE,
    operationId: 'previewSchedule',
    summary: 'The next runs of a schedule, whether it is active or not',
    query: schemas.previewQuery,
    response: schemas.preview,
    handle: async (scheduler, { params: { id }, query: { count = DEFAULT_PREVIEW, from } }) => ({
      id,
      nextRuns: (await find(scheduler, id)).nextRuns(count, from),
    }),
  }),
  route('GET /schedules/{id}/skips', {
    ...ONE_SCHEDULE,
    operationId: 'listSkips',
    summary: 'Occurrences that did not become jobs, latest first',
    query: schemas.skipQuery,
    response: schemas.skipPage,
    handle: async (scheduler, { params: { id }, query }) => {
      await find(scheduler, id);
      return scheduler.getSkips(id, { ...query });
    },
  }),
  route('POST /schedules/{id}/pause', {
    ...CHANGE_SCHEDULE,
    operationId: 'pauseSchedule',
    summary: 'Pause a schedule until it is resumed; also for schedules in code',
    body: reasonBody,
    handle: async (scheduler, { params: { id }, body: { reason } }, { who }) =>
      changed(id, await scheduler.pauseSchedule(id, { by: who, ...(reason !== undefined && { reason }) })),
  }),
  route('POST /schedules/{id}/resume', {
    ...CHANGE_SCHEDULE,
    operationId: 'resumeSchedule',
    summary: 'Resume a schedule from now on; runs that were due during the pause are recorded as skipped',
    body: emptyRequest,
    handle: async (scheduler, { params: { id } }) => changed(id, await scheduler.resumeSchedule(id)),
  }),
  route('POST /schedules/{id}/trigger', {
    ...CHANGE_SCHEDULE,
    operationId: 'triggerSchedule',
    summary: 'Run a schedule once now, in addition to its occurrences',
    body: emptyRequest,
    response: schemas.triggered,
    problems: [404, 409],
    handle: async (scheduler, { params: { id } }) => {
      const result = await scheduler.triggerSchedule(id);
      if (result.triggered) return { jobId: result.jobId };
      if (result.reason === 'notFound') return throwNotFound(id);
      const state =
        result.reason === 'waiting' ? 'is waiting to start' : `is still active after ${result.runningFor} ms`;
      throw new ChronosError(
        'WRONG_STATE',
        `schedule '${id}' was not triggered: its run '${result.jobId}' ${state}, and its runs must not overlap`,
      );
    },
  }),
  route('POST /schedules/{id}/backfill', {
    ...ONE_SCHEDULE,
    operationId: 'backfillSchedule',
    summary: 'Create the missing jobs of past occurrences between two instants',
    body: schemas.backfillBody,
    response: schemas.backfilled,
    audit: {
      before: ({ params: { id }, body: { from, to } }) => ({ target: id, filter: { from, to } }),
      after: ({ occurrences, existing }) => ({ counts: { occurrences, existing } }),
    },
    handle: (scheduler, { params: { id }, body: { from, to } }) => scheduler.backfill(id, from, to),
  }),
  route('GET /schedule-differences', {
    operationId: 'diffSchedules',
    summary: 'Differences between the definitions in the code of this worker and the stored schedules',
    response: schemas.differences,
    handle: async ({ operations }) => ({ differences: await operations.diffSchedules() }),
  }),
];

async function find(scheduler: Scheduler, id: string): Promise<StoredSchedule> {
  return (await scheduler.getSchedule(id)) ?? throwNotFound(id);
}

function changed(id: string, isFound: boolean): { id: string } {
  return isFound ? { id } : throwNotFound(id);
}

function throwNotFound(id: string): never {
  throw new ChronosError('SCHEDULE_NOT_FOUND', `there is no schedule '${id}'`);
}
