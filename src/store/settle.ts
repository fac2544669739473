import type { mongo } from 'mongoose';
import { assertNever } from '../domain/assert-never.js';
import { storedError } from '../domain/errors.js';
import { groupBy } from '../domain/group-by.js';
import { LOCKED_STATUSES, type JobDocument } from '../domain/job.js';
import { goesOn, TRANSITION_OF, type Outcome } from '../domain/outcome.js';
import { storedResult } from '../domain/result.js';
import { TRANSITIONS, type Transition } from '../domain/transitions.js';
import { NO_LOCK } from './lock-fields.js';
import type { Collections } from './models.js';

export interface Settlement {
  jobId: string;
  token: string;
  workerId: string;
  outcome: Outcome;
  startedAt: Date;
  finishedAt: Date;
}

/**
 * `settled`: the write took effect, now or in an earlier try whose reply was lost. `cancelRequested`: it did not,
 * because the job would run again although a person asked to cancel it, for this reason. `lost`: the lock is somebody else's.
 * `unknown`: ask again.
 */
export type Settled = 'settled' | { cancelRequested: string | null } | 'lost' | 'unknown';

type Statement = mongo.AnyBulkWriteOperation<JobDocument>;

/** Writes outcomes in one round trip. An error means that nothing is known: call `findSettled` before writing again. */
export async function settle(c: Collections, settlements: readonly Settlement[]): Promise<Settled[]> {
  const statements = group(settlements);
  const { matchedCount } = await c.jobs.bulkWrite(statements, { ordered: false });
  if (matchedCount === settlements.length) return settlements.map(() => 'settled');
  return findSettled(c, settlements);
}

/** What became of these settlements, read back by the token each write leaves behind. */
export async function findSettled(c: Collections, settlements: readonly Settlement[]): Promise<Settled[]> {
  const ids = settlements.map(({ jobId }) => jobId);
  const found = await c.jobs
    .find(
      { _id: { $in: ids } },
      {
        projection: { lockToken: 1, settledToken: 1, cancelRequested: 1 },
        hint: { _id: 1 },
        readConcern: 'majority',
      },
    )
    .toArray();
  const byId = new Map(found.map((job) => [job._id, job]));
  return settlements.map(({ jobId, token, outcome }) => {
    const job = byId.get(jobId);
    if (job?.settledToken === token) return 'settled';
    if (job?.lockToken !== token) return 'lost';
    if (job.cancelRequested === null || !goesOn(outcome)) return 'unknown';
    return { cancelRequested: job.cancelRequested.reason };
  });
}

/**
 * One statement per token, never several tokens in one: a job lost and claimed again by this very process would
 * be settled by its own zombie. Completions without a result under one token share a statement.
 */
function group(settlements: readonly Settlement[]): Statement[] {
  const alone = settlements.filter(({ outcome }) => !isPlainCompletion(outcome));
  const shared = groupBy(
    settlements.filter(({ outcome }) => isPlainCompletion(outcome)),
    ({ token }) => token,
  );
  return [
    ...alone.map((settlement): Statement => ({ updateOne: { ...statement(settlement), hint: { _id: 1 } } })),
    ...[...shared.values()].map(sharedStatement),
  ];
}

function isPlainCompletion(outcome: Outcome): boolean {
  return outcome.kind === 'completed' && (outcome.result === undefined || outcome.result === null);
}

function sharedStatement(equals: readonly [Settlement, ...Settlement[]]): Statement {
  // One pair of times for all of them; the execution log has each one's own.
  const startedAt = new Date(Math.min(...equals.map((one) => one.startedAt.getTime())));
  const finishedAt = new Date(Math.max(...equals.map((one) => one.finishedAt.getTime())));
  const { filter, update } = statement({ ...equals[0], startedAt, finishedAt });
  return {
    updateMany: {
      filter: { ...filter, _id: { $in: equals.map(({ jobId }) => jobId) } },
      update,
      hint: { _id: 1 },
    },
  };
}

function statement({ jobId, token, workerId, outcome, startedAt, finishedAt }: Settlement): {
  filter: mongo.Filter<JobDocument>;
  update: mongo.UpdateFilter<JobDocument>;
} {
  const transition: Transition = TRANSITIONS[TRANSITION_OF[outcome.kind]];
  return {
    filter: {
      _id: jobId,
      lockToken: token,
      status: { $in: [...LOCKED_STATUSES] },
      // A job that somebody wants cancelled must not come back.
      ...(goesOn(outcome) && { cancelRequested: null }),
    },
    update: {
      $set: {
        status: transition.to,
        ...NO_LOCK,
        settledToken: token,
        settledBy: workerId,
        finishedAt: goesOn(outcome) ? null : finishedAt,
        ...fieldsOf(outcome, finishedAt),
      },
      // The time of the claim until now, or nothing: a buffered job may be settled before its start was marked.
      $max: { startedAt },
      $min: { firstStartedAt: startedAt },
      ...((transition.fence > 0 || countsAttempt(outcome)) && {
        $inc: { ...(transition.fence > 0 && { fence: 1 }), ...(countsAttempt(outcome) && { attempts: 1 }) },
      }),
    },
  };
}

function countsAttempt(outcome: Outcome): boolean {
  return outcome.kind === 'retry' || outcome.kind === 'failed';
}

function fieldsOf(outcome: Outcome, finishedAt: Date): Partial<JobDocument> {
  switch (outcome.kind) {
    case 'completed':
      return { ...storedResult(outcome.result), error: null };
    case 'retry':
      return { nextRunAt: outcome.nextRunAt, error: storedError(outcome.error) };
    case 'failed':
      return { error: storedError(outcome.error) };
    case 'skipped':
      return { skipReason: outcome.reason };
    case 'snoozed':
      return { nextRunAt: outcome.until };
    case 'cancelled':
      return { cancelRequested: { reason: outcome.reason, at: finishedAt } };
    case 'givenBack':
      return {};
    default:
      return assertNever(outcome);
  }
}
