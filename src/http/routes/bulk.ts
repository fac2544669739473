import type { JobFilterOptions } from '../../config/query-options.js';
import { ChronosError } from '../../domain/errors.js';
import type { BulkAction, BulkAnswer, BulkOptions } from '../../operations/bulk.js';
import { countsOf, type AuditDetails } from '../../operations/audited.js';
import type { Operations } from '../../operations/operations.js';
import type { Count } from '../../store/list-jobs.js';
import { route, type Asked, type CallContext, type Route } from '../route.js';
import { bulkBody, bulkResult, deadBody, type BulkRequest, type BulkResult } from '../schemas/jobs.js';

/** A request is not kept waiting for longer, in milliseconds; what was changed by then stays changed. */
const LONGEST = 30_000;

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
    'Run all finished jobs again that match: those that FAILED, unless the filter says otherwise',
  ),
  bulk('cancel', 'cancelJobs', 'Cancel all jobs that match'),
  bulk('hold', 'holdJobs', 'Take all waiting jobs that match out of play'),
  bulk('release', 'releaseJobs', 'Put all held jobs that match back into play'),
  route({
    method: 'POST',
    path: '/dead/retry',
    operationId: 'retryDead',
    summary: 'Run all jobs again that FAILED and match',
    body: deadBody,
    answer: bulkResult,
    problems: [409],
    audit: { before: noted, after: counted },
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
    answer: bulkResult,
    problems: [409],
    audit: { before: noted, after: counted },
    handle: ({ operations }, { body }, context) => change(operations, action, body, context, body.filter),
  });
}

/** `said` is what the request says itself: without any of it, all jobs are meant, and that has to be said. */
async function change(
  operations: Operations,
  action: BulkAction,
  { filter = {}, all = false, dryRun = false, expected, reason }: BulkRequest<JobFilterOptions>,
  { whileWanted }: CallContext,
  said: object = {},
): Promise<BulkResult> {
  if (Object.keys(said).length === 0 && !all) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      'without a filter every job is meant: say `all: true` if that is so',
    );
  }
  const matching = await operations.countMatching(filter, action);
  if (dryRun) return { matching, outcome: null };
  if (expected !== undefined) checkExpected(matching, expected);
  const outcome = await whileWanted(LONGEST, (signal) =>
    CHANGES[action](operations, filter, { ...(reason !== undefined && { reason }), signal }),
  );
  return { matching, outcome };
}

function checkExpected({ count, atLeast }: Count, expected: number): void {
  if (count <= expected && !atLeast) return;
  const found = atLeast ? `more than ${count}` : String(count);
  throw new ChronosError(
    'WRONG_STATE',
    `${expected} jobs were expected, and ${found} match by now: nothing was changed. Look again with dryRun: true`,
  );
}

function noted({ body }: Asked<unknown, unknown, BulkRequest<JobFilterOptions>>): AuditDetails | undefined {
  if (body.dryRun === true) return undefined;
  return { filter: { ...body.filter, ...(body.all === true && { all: 'true' }) } };
}

function counted({ outcome }: BulkResult): AuditDetails {
  return outcome === null ? {} : countsOf(outcome);
}
