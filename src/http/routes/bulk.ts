import type { JobFilterOptions } from '../../config/query-options.js';
import { ChronosError } from '../../domain/errors.js';
import { type AuditDetails, bulkCounts } from '../../operations/audit.js';
import type { BulkAction, BulkAnswer, BulkOptions } from '../../operations/bulk.js';
import type { Operations } from '../../operations/operations.js';
import type { Count } from '../../store/jobs/counts.js';
import { type RouteInput, type CallContext, route, type Route } from '../route.js';
import { bulkBody, type BulkRequest, bulkResult, type BulkResult, deadBody } from '../schemas/jobs.js';

/** Then the request ends with what was changed so far. */
const TIMEOUT_MS = 30_000;

const CHANGES: Record<
  BulkAction,
  (operations: Operations, filter: JobFilterOptions, options: BulkOptions) => Promise<BulkAnswer>
> = {
  retry: (operations, filter, options) => operations.retryJobs(filter, options),
  cancel: (operations, filter, options) => operations.cancelJobs(filter, options),
  hold: (operations, filter, options) => operations.holdJobs(filter, options),
  release: (operations, filter, options) => operations.releaseJobs(filter, options),
};

export const bulkRoutes: readonly Route[] = [
  bulk(
    'retry',
    'retryJobs',
    'Run all matching finished jobs again: FAILED ones, unless the filter has another status',
  ),
  bulk('cancel', 'cancelJobs', 'Cancel all matching jobs'),
  bulk('hold', 'holdJobs', 'Keep all matching waiting jobs from running'),
  bulk('release', 'releaseJobs', 'Let all matching held jobs run again'),
  route({
    method: 'POST',
    path: '/dead/retry',
    operationId: 'retryDead',
    summary: 'Run all matching FAILED jobs again',
    body: deadBody,
    response: bulkResult,
    problems: [409],
    audit: { before: auditFilter, after: auditCounts },
    handle: ({ operations }, { body }, context) =>
      change(
        operations,
        'retry',
        { ...body, filter: { ...body.filter, status: 'FAILED' } },
        context,
        body.filter,
      ),
  }),
];

function bulk(action: BulkAction, operationId: string, summary: string): Route {
  return route({
    method: 'POST',
    path: `/bulk/jobs/${action}`,
    operationId,
    summary,
    body: bulkBody,
    response: bulkResult,
    problems: [409],
    audit: { before: auditFilter, after: auditCounts },
    handle: ({ operations }, { body }, context) => change(operations, action, body, context, body.filter),
  });
}

/** `requested` is the filter of the request itself; without one, the request must confirm that it means all jobs. */
async function change(
  operations: Operations,
  action: BulkAction,
  { filter = {}, all = false, dryRun = false, expected, reason }: BulkRequest<JobFilterOptions>,
  { withSignal }: CallContext,
  requested: object = {},
): Promise<BulkResult> {
  if (Object.keys(requested).length === 0 && !all) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      'without a filter this changes every job: add `all: true` to confirm',
    );
  }
  const matching = await operations.countMatching(filter, action);
  if (dryRun) return { matching, outcome: null };
  if (expected !== undefined) assertExpected(matching, expected);
  const outcome = await withSignal(TIMEOUT_MS, (signal) =>
    CHANGES[action](operations, filter, { ...(reason !== undefined && { reason }), signal }),
  );
  return { matching, outcome };
}

function assertExpected({ count, atLeast }: Count, expected: number): void {
  if (count <= expected && !atLeast) return;
  const found = atLeast ? `more than ${count}` : String(count);
  throw new ChronosError(
    'WRONG_STATE',
    `${expected} jobs were expected, but ${found} match by now: nothing was changed. Count again with dryRun: true`,
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
