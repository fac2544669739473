import type { JobFilterOptions } from '../../config/query-options.js';
import { ChronosError } from '../../domain/errors.js';
import { type AuditDetails, bulkCounts } from '../../operations/audit.js';
import type { BulkAction, BulkOptions } from '../../operations/bulk.js';
import type { Operations } from '../../operations/operations.js';
import type { Count } from '../../store/jobs/counts.js';
import { type CallContext, route, type Route, type RouteInput } from '../route.js';
import {
  bulkBody,
  type BulkRequest,
  bulkResult,
  type BulkResult,
  type ConfirmedRequest,
  deadBody,
  emptyBody,
  emptyResult,
  queueParams,
} from '../schemas/jobs.js';

/** When the time is up, the response contains what was changed so far. */
const TIMEOUT_MS = 30_000;

const COMMON = {
  response: bulkResult,
  problems: [409],
  audit: { before: auditFilter, after: auditCounts },
};

export const bulkRoutes: readonly Route[] = [
  bulk('retry', 'Run all matching finished jobs again: failed ones, unless the filter has another state'),
  bulk('cancel', 'Cancel all matching jobs'),
  bulk('hold', 'Keep all matching waiting jobs from running'),
  bulk('unhold', 'Let all matching held jobs run again'),
  bulk(
    'delete',
    'Delete all matching finished jobs, except jobs of schedules that finished within the last hour',
  ),
  route('POST /dead/retry', {
    ...COMMON,
    operationId: 'retryDead',
    summary: 'Run all matching failed jobs again',
    body: deadBody,
    handle: ({ operations }, { body }, context) =>
      change(operations, 'retry', body, context, { state: 'failed' }),
  }),
  route('POST /queues/{queue}/empty', {
    operationId: 'emptyQueue',
    summary:
      'Delete the jobs of a queue that no worker has claimed; those of schedules are cancelled, so that they are not created again',
    params: queueParams,
    body: emptyBody,
    response: emptyResult,
    problems: [409],
    audit: {
      before: ({ params: { queue }, body }) => (body.dryRun === true ? undefined : { target: queue }),
      after: ({ outcome }) => (outcome === null ? {} : bulkCounts(outcome)),
    },
    handle: ({ operations }, { params: { queue }, body }, context) =>
      confirmed(
        body,
        () => operations.countMatching({ queue }, 'empty'),
        (options) => operations.emptyQueue(queue, options),
        context,
      ),
  }),
];

function bulk(action: BulkAction, summary: string): Route {
  return route(`POST /bulk/jobs/${action}`, {
    ...COMMON,
    operationId: `${action}Jobs`,
    summary,
    body: bulkBody,
    handle: ({ operations }, { body }, context) => change(operations, action, body, context),
  });
}

/** `fixedFilter` is added by the route itself, so it does not count as a filter that the client chose. */
async function change(
  operations: Operations,
  action: BulkAction,
  { filter: clientFilter = {}, all = false, ...request }: BulkRequest<JobFilterOptions>,
  context: CallContext,
  fixedFilter: JobFilterOptions = {},
): Promise<BulkResult> {
  if (Object.keys(clientFilter).length === 0 && !all) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      'without a filter this changes every job: add `all: true` to confirm',
    );
  }
  const filter = { ...clientFilter, ...fixedFilter };
  return confirmed(
    request,
    () => operations.countMatching(filter, action),
    (options) => operations[`${action}Jobs` as const](filter, options),
    context,
  );
}

/** Counts first. Makes no change for a dry run, or if more jobs match than expected. */
async function confirmed<R>(
  { dryRun = false, expected, reason }: ConfirmedRequest,
  count: () => Promise<Count>,
  makeChange: (options: BulkOptions) => Promise<R>,
  { withSignal }: CallContext,
): Promise<{ matching: Count; outcome: R | null }> {
  const matching = await count();
  if (dryRun) return { matching, outcome: null };
  if (expected !== undefined) assertExpected(matching, expected);
  const outcome = await withSignal(TIMEOUT_MS, (signal) =>
    makeChange({ ...(reason !== undefined && { reason }), signal }),
  );
  return { matching, outcome };
}

function assertExpected({ count, atLeast }: Count, expected: number): void {
  if (count <= expected && !atLeast) return;
  const found = atLeast ? `more than ${count}` : String(count);
  throw new ChronosError(
    'WRONG_STATE',
    `nothing was changed: expected at most ${expected} matching jobs, found ${found}. Count again with dryRun: true`,
  );
}

function auditFilter({
  body,
}: RouteInput<unknown, unknown, BulkRequest<JobFilterOptions>>): AuditDetails | undefined {
  if (body.dryRun === true) return undefined;
  return { filter: { ...body.filter, ...(body.all === true && { all: 'true' }) } };
}

function auditCounts({ outcome }: BulkResult): AuditDetails {
  return outcome === null ? {} : bulkCounts(outcome);
}
