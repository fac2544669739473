import type { PruneCounts } from '../../maintenance/pruner.js';
import { route, type Route } from '../route.js';
import { definitions } from '../schemas/schedules.js';
import {
  auditPage,
  auditQuery,
  collected,
  configuration,
  emptyBody,
  findings,
  pruneBody,
  pruned,
  queues,
  statusView,
  workers,
} from '../schemas/system.js';

const NOTHING_PRUNED: PruneCounts = { finished: 0, orphans: 0, expired: 0 };

export const systemRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/status',
    operationId: 'readStatus',
    summary: 'Everything at one glance',
    answer: statusView,
    handle: ({ operations }) => operations.status(),
  }),
  route({
    method: 'GET',
    path: '/queues',
    operationId: 'listQueues',
    summary: 'Queues with their counts, what waits longest, and how fast they empty',
    answer: queues,
    handle: async ({ operations }) => ({ queues: await operations.listQueues() }),
  }),
  route({
    method: 'GET',
    path: '/workers',
    operationId: 'listWorkers',
    summary: 'Worker processes of the last day, those that live first',
    answer: workers,
    handle: async ({ operations }) => ({ workers: await operations.listWorkers() }),
  }),
  route({
    method: 'GET',
    path: '/doctor',
    operationId: 'examine',
    summary: 'What may be wrong with the installation, and what to do about it',
    answer: findings,
    handle: async ({ operations }) => {
      const found = await operations.doctor();
      return { isWell: found.every(({ level }) => level !== 'error'), findings: found };
    },
  }),
  route({
    method: 'GET',
    path: '/definitions',
    operationId: 'listDefinitions',
    summary: 'The definitions in the code of this worker, with their rules and next times',
    answer: definitions,
    handle: async ({ operations }) => ({ definitions: await operations.listDefinitions() }),
  }),
  route({
    method: 'GET',
    path: '/configuration',
    operationId: 'readConfiguration',
    summary: 'What this worker works with; never its connection string',
    answer: configuration,
    handle: ({ operations }) => Promise.resolve(operations.configuration()),
  }),
  route({
    method: 'GET',
    path: '/audit',
    operationId: 'listAudit',
    summary: 'Who did what, the newest first',
    query: auditQuery,
    answer: auditPage,
    handle: ({ operations }, { query }) => operations.listAudit({ ...query }),
  }),
  route({
    method: 'POST',
    path: '/prune',
    operationId: 'prune',
    summary:
      'Remove finished jobs past their retention; with an age also orphans and jobs whose lock expired, all older than that',
    body: pruneBody,
    answer: pruned,
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
  route({
    method: 'POST',
    path: '/collect',
    operationId: 'collect',
    summary: 'One pass that only makes the jobs that schedules owe',
    body: emptyBody,
    answer: collected,
    audit: { before: () => ({}), after: ({ created }) => ({ counts: { created } }) },
    handle: ({ operations }) => operations.collect(),
  }),
];
