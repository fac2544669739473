import type { mongo } from 'mongoose';
import { storedError } from '../../domain/errors.js';
import { type JobDocument, keptUntil, type Retention } from '../../domain/job/job.js';
import { isRescheduled, type Outcome, TRANSITION_OF } from '../../domain/job/outcome.js';
import { type Transition, TRANSITIONS } from '../../domain/job/transitions.js';
import { assertNever } from '../../domain/language.js';
import { storedResult } from '../../domain/plain-data.js';
import type { Collections } from '../schema/collections.js';
import { byToken, isOwnedBy, isSettledBy, LOCK_FIELDS, ownedBy, readOwnership } from './fence.js';
import type { StoredJob } from './stored-job.js';

/** How many tokens a job remembers of attempts that were followed by another. */
const REMEMBERED_TOKENS = 5;

/** An outcome to write. */
export interface Settlement {
  jobId: string;
  token: string;
  workerId: string;
  outcome: Outcome;
  startedAt: Date;
  finishedAt: Date;
  /** The retention of the job or its task type, if it has one. */
  retention?: Partial<Retention> | undefined;
}

/**
 * `settled`: the write took effect, now or in an earlier try whose reply was lost. `cancelRequested`: not written, because
 * the outcome would reschedule a job whose cancellation was requested, with this reason. `lost`: this worker no longer
 * owns the job. `unknown`: not written for an unknown reason; try again.
 */
export type Settled = 'settled' | { cancelRequested: string | null } | 'lost' | 'unknown';

type Statement = mongo.AnyBulkWriteOperation<StoredJob>;

/** Writes outcomes in one round trip. After an error, call `findSettled` before writing again. */
export async function settle(c: Collections, settlements: readonly Settlement[]): Promise<Settled[]> {
  const { matchedCount } = await c.jobs.bulkWrite(toStatements(settlements), { ordered: false });
  if (matchedCount === settlements.length) return settlements.map(() => 'settled');
  return findSettled(c, settlements);
}

/** Reads back, by token, which settlements took effect. */
export async function findSettled(c: Collections, settlements: readonly Settlement[]): Promise<Settled[]> {
  const ids = settlements.map(({ jobId }) => jobId);
  const jobs = await readOwnership(c, ids, 'majority');
  return settlements.map(({ jobId, token, outcome }) => {
    const job = jobs.get(jobId);
    if (isSettledBy(job, token)) return 'settled';
    if (job === undefined || !isOwnedBy(job, token)) return 'lost';
    if (job.cancelRequested === null || !isRescheduled(outcome)) return 'unknown';
    return { cancelRequested: job.cancelRequested.reason };
  });
}

/** Completions without a result share one statement per token. */
function toStatements(settlements: readonly Settlement[]): Statement[] {
  const plain = settlements.filter(isPlainCompletion);
  const others = settlements.filter((settlement) => !isPlainCompletion(settlement));
  return [
    ...others.map((settlement): Statement => {
      const filter = settleFilter(settlement, settlement.jobId);
      return { updateOne: { filter, update: settleUpdate(settlement), hint: { _id: 1 } } };
    }),
    ...byToken(plain).map(sharedStatement),
  ];
}

function isPlainCompletion({ outcome, retention }: Settlement): boolean {
  if (outcome.kind !== 'completed' || retention !== undefined) return false;
  return outcome.result === undefined || outcome.result === null;
}

function sharedStatement(group: readonly [Settlement, ...Settlement[]]): Statement {
  // One pair of times for the whole group; the execution log has the exact times of each job.
  const startedAt = new Date(Math.min(...group.map((one) => one.startedAt.getTime())));
  const finishedAt = new Date(Math.max(...group.map((one) => one.finishedAt.getTime())));
  const ids = group.map(({ jobId }) => jobId);
  return {
    updateMany: {
      filter: settleFilter(group[0], ids),
      update: settleUpdate({ ...group[0], startedAt, finishedAt }),
      hint: { _id: 1 },
    },
  };
}

function settleFilter(
  { token, outcome }: Settlement,
  ids: string | readonly string[],
): mongo.Filter<StoredJob> {
  // A job whose cancellation was requested must not run again.
  return { ...ownedBy(token, ids), ...(isRescheduled(outcome) && { cancelRequested: null }) };
}

function settleUpdate(settlement: Settlement): mongo.UpdateFilter<StoredJob> {
  const { token, workerId, outcome, startedAt, finishedAt, retention } = settlement;
  const transition: Transition = TRANSITIONS[TRANSITION_OF[outcome.kind]];
  const keepUntil = keptUntil(transition.to, retention, finishedAt);
  return {
    $set: {
      status: transition.to,
      settledToken: token,
      settledBy: workerId,
      ...(!isRescheduled(outcome) && { finishedAt }),
      ...outcomeFields(outcome, finishedAt),
      ...(keepUntil !== undefined && { keepUntil }),
    },
    $unset: {
      ...LOCK_FIELDS,
      // The error of an earlier attempt.
      ...(outcome.kind === 'completed' && { error: '' }),
      // The claim has stored a start that did not take place.
      ...(outcome.kind === 'expired' && { startedAt: '' }),
    },
    ...(isRescheduled(outcome) && {
      $push: { settledTokens: { $each: [token], $slice: -REMEMBERED_TOKENS } },
    }),
    // Stored so far: the time of the claim, or nothing if a prefetched job is settled before its start was marked.
    ...(outcome.kind !== 'expired' && { $max: { startedAt }, $min: { firstStartedAt: startedAt } }),
    ...((transition.fence > 0 || countsAttempt(outcome)) && {
      $inc: { ...(transition.fence > 0 && { fence: 1 }), ...(countsAttempt(outcome) && { attempts: 1 }) },
    }),
  };
}

function countsAttempt(outcome: Outcome): boolean {
  return outcome.kind === 'retry' || outcome.kind === 'failed';
}

function outcomeFields(outcome: Outcome, finishedAt: Date): Partial<JobDocument> {
  switch (outcome.kind) {
    case 'completed': {
      const { result, resultCut } = storedResult(outcome.result);
      return { ...(result !== null && { result }), ...(resultCut && { resultCut }) };
    }
    case 'retry':
      return { nextRunAt: outcome.nextRunAt, error: storedError(outcome.error) };
    case 'failed':
      return { error: storedError(outcome.error) };
    case 'skipped':
      return { skipReason: outcome.reason, cancelKind: 'skipped' };
    case 'expired':
      return { cancelKind: 'expired' };
    case 'snoozed':
      return { nextRunAt: outcome.until };
    case 'cancelled':
      return { cancelRequested: { reason: outcome.reason, at: finishedAt }, cancelKind: 'cancelled' };
    case 'released':
      return {};
    default:
      return assertNever(outcome);
  }
}
