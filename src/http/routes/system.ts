import { ChronosError } from '../../domain/errors.js';
import type { PruneCounts } from '../../maintenance/pruner.js';
import { route, type Route } from '../route.js';
import { emptyRequest } from '../schemas/schema.js';
import { definitionPage } from '../schemas/schedules.js';
import * as schemas from '../schemas/system.js';

/** A request to a worker, which any worker can receive. */
function drainRoute(name: 'drain' | 'undrain', summary: string): Route {
  return route(`POST /workers/{id}/${name}`, {
    operationId: `${name}Worker`,
    summary: `${summary}; it follows with its next heartbeat`,
    params: schemas.workerParams,
    body: emptyRequest,
    response: schemas.workerRequest,
    problems: [404, 409],
    audit: { before: ({ params: { id } }) => ({ target: id }) },
    handle: async ({ operations }, { params: { id } }) => {
      const { result } = await operations[`${name}Worker` as const](id);
      if (result === 'notFound')
        throw new ChronosError('WORKER_NOT_FOUND', `there was no worker '${id}' within the last day`);
      if (result === 'notLive')
        throw new ChronosError('WRONG_STATE', `the worker '${id}' has stopped, or sends no heartbeats`);
      return { id };
    },
  });
}

const NOTHING_PRUNED: PruneCounts = { finished: 0, orphans: 0, expired: 0 };

export const systemRoutes: readonly Route[] = [
  route('GET /status', {
    operationId: 'readStatus',
    summary: 'Queues, workers, counts and throughput at a glance',
    response: schemas.statusView,
    handle: ({ operations }) => operations.status(),
  }),
  route('GET /queues', {
    operationId: 'listQueues',
    summary: 'Queues with their counts, longest wait and throughput',
    response: schemas.queuePage,
    handle: ({ operations }) => operations.listQueues(),
  }),
  route('GET /workers', {
    operationId: 'listWorkers',
    summary: 'Worker processes of the last day, live ones first',
    response: schemas.workerPage,
    handle: ({ operations }) => operations.listWorkers(),
  }),
  drainRoute('drain', 'Ask a worker to claim no more jobs and finish those that it runs; it stays up'),
  drainRoute('undrain', 'Ask a worker to claim jobs again'),
  route('GET /doctor', {
    operationId: 'runDoctor',
    summary: 'Problems of the installation, and what to do about them',
    response: schemas.findings,
    handle: async ({ operations }) => {
      const found = await operations.doctor();
      return { isWell: found.every(({ level }) => level !== 'error'), findings: found };
    },
  }),
  route('GET /definitions', {
    operationId: 'listDefinitions',
    summary: 'The schedules defined in the code of this worker, with their rules and next runs',
    response: definitionPage,
    handle: ({ operations }) => operations.listDefinitions(),
  }),
  route('GET /configuration', {
    operationId: 'readConfiguration',
    summary: 'The options of this worker, without its connection string',
    response: schemas.configuration,
    handle: ({ operations }) => Promise.resolve(operations.configuration()),
  }),
  route('GET /audit', {
    operationId: 'listAudit',
    summary: 'Who did what, newest first',
    query: schemas.auditQuery,
    response: schemas.auditPage,
    handle: ({ operations }, { query }) => operations.listAudit({ ...query }),
  }),
  route('POST /prune', {
    operationId: 'prune',
    summary:
      'Remove finished jobs past their retention; with olderThan also orphans and jobs with an expired lock that are older',
    body: schemas.pruneBody,
    response: schemas.pruned,
    audit: {
      before: ({ body: { olderThan, dryRun } }) =>
        dryRun === true
          ? undefined
          : { filter: { olderThan: olderThan === undefined ? 'retention' : String(olderThan) } },
      after: ({ finished, orphans, expired }) => ({ counts: { finished, orphans, expired } }),
    },
    handle: async (scheduler, { body: { olderThan, dryRun } }) =>
      dryRun === true
        ? { ...NOTHING_PRUNED, matching: await scheduler.operations.countPrunable(olderThan) }
        : { ...(await scheduler.prune(olderThan)), matching: null },
  }),
  route('POST /collect', {
    operationId: 'collect',
    summary: 'Create the jobs of all due schedules, without running any',
    body: emptyRequest,
    response: schemas.collected,
    audit: { before: () => ({}), after: ({ created }) => ({ counts: { created } }) },
    handle: ({ operations }) => operations.collect(),
  }),
];
