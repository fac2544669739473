import { ChronosError, toError } from '../errors.js';
import { assertNever } from '../language.js';
import { type HandlerRetries, isRetryable, type OnRetryFunctionError, retryDelay } from './backoff.js';
import { delayOf, isCancelJob, isRetryAfter, isSnoozeJob, isUnrecoverable } from './control-flow.js';
import type { JobDocument } from './job.js';
import { type TransitionName, TRANSITIONS } from './transitions.js';

/** The result of an attempt: returned by the executor, written by the settler. */
export type Outcome =
  | { kind: 'completed'; result: unknown }
  | { kind: 'retry'; error: Error; nextRunAt: Date }
  | { kind: 'failed'; error: Error }
  | { kind: 'cancelled'; reason: string }
  | { kind: 'skipped'; reason: string }
  /** The job expired before its handler was called. */
  | { kind: 'expired'; expiresAt: Date }
  | { kind: 'snoozed'; until: Date }
  | { kind: 'released' };

export type OutcomeKind = Outcome['kind'];

export const TRANSITION_OF: Record<OutcomeKind, TransitionName> = {
  completed: 'complete',
  retry: 'retryLater',
  failed: 'fail',
  cancelled: 'stopRunning',
  skipped: 'skip',
  expired: 'expireClaimed',
  snoozed: 'snooze',
  released: 'release',
};

/** True if the job runs again after this outcome. */
export function isRescheduled(outcome: Outcome): boolean {
  return TRANSITIONS[TRANSITION_OF[outcome.kind]].to === 'SCHEDULED';
}

/** Why a handler's signal was aborted. */
export type AbortKind = 'timeout' | 'ranTooLong' | 'lockLost' | 'cancelled' | 'shutdown';

/** How a handler ended, before any policy is applied. */
export type HandlerEnding =
  | { kind: 'returned'; value: unknown }
  | { kind: 'threw'; thrown: unknown }
  /** The handler was not called, because the job can never succeed: an invalid payload, or maxRunningTime has passed. */
  | { kind: 'rejected'; error: Error }
  /** The handler was not called, because a filter skipped the job. */
  | { kind: 'skipped'; reason: string }
  /** The handler did not end within the grace time after its signal was aborted. */
  | { kind: 'stuck' };

export interface OutcomeInput {
  ending: HandlerEnding;
  /** Set if the signal was aborted before the handler ended. */
  abort: { kind: AbortKind; error: Error } | undefined;
  job: Pick<JobDocument, 'attempts' | 'firstStartedAt' | 'maxRunningTime'>;
  /** Called only if the attempt failed. */
  policy: () => HandlerRetries;
  onRetryFunctionError: OnRetryFunctionError;
  now: Date;
  random: () => number;
}

/**
 * Decides the outcome from the way a handler ended. If its signal was aborted, the reason of the abort decides, however
 * the handler ended: a handler that returns early because of its signal has not completed.
 */
export function resolveOutcome(input: OutcomeInput): Outcome {
  const { ending, abort, now } = input;
  if (ending.kind === 'rejected') return { kind: 'failed', error: ending.error };
  if (ending.kind === 'threw' && isCancelJob(ending.thrown))
    return { kind: 'cancelled', reason: ending.thrown.message };
  if (ending.kind === 'threw' && isSnoozeJob(ending.thrown)) {
    return { kind: 'snoozed', until: new Date(now.getTime() + delayOf(ending.thrown)) };
  }
  if (ending.kind === 'skipped') return { kind: 'skipped', reason: ending.reason };
  if (abort === undefined) {
    if (ending.kind === 'returned') return { kind: 'completed', result: ending.value };
    return resolveFailure(input, ending.kind === 'threw' ? ending.thrown : undefined);
  }
  switch (abort.kind) {
    case 'cancelled':
      return { kind: 'cancelled', reason: abort.error.message };
    case 'shutdown':
    case 'lockLost':
      return { kind: 'released' };
    case 'timeout':
    case 'ranTooLong':
      return resolveFailure(input, abort.error);
    default:
      return assertNever(abort.kind);
  }
}

function resolveFailure(input: OutcomeInput, thrown: unknown): Outcome {
  const { abort, job, now } = input;
  const error = toError(thrown);
  if (abort?.kind === 'ranTooLong' || isUnrecoverable(thrown)) return { kind: 'failed', error };
  const delay = delayOfNextAttempt(input, thrown, error);
  if (delay === undefined) return { kind: 'failed', error };
  const nextRunAt = new Date(now.getTime() + delay);
  if (exceedsMaxRunningTime(job, nextRunAt)) return { kind: 'failed', error };
  return { kind: 'retry', error, nextRunAt };
}

/** Milliseconds; undefined if this attempt was the last one. */
function delayOfNextAttempt(
  { job, policy, random, onRetryFunctionError }: OutcomeInput,
  thrown: unknown,
  error: Error,
): number | undefined {
  const attempt = job.attempts + 1;
  const retries = policy();
  if (attempt >= retries.max) return undefined;
  if (isRetryAfter(thrown)) return delayOf(thrown);
  if (!isRetryable(retries, error, onRetryFunctionError)) return undefined;
  return retryDelay(retries, attempt, error, random, onRetryFunctionError);
}

/** True if at this time all attempts together have taken longer than the job's limit. */
export function exceedsMaxRunningTime(
  { firstStartedAt, maxRunningTime }: Pick<JobDocument, 'firstStartedAt' | 'maxRunningTime'>,
  at: Date,
): boolean {
  if (maxRunningTime === null || firstStartedAt === undefined) return false;
  return at.getTime() >= firstStartedAt.getTime() + maxRunningTime;
}

export function maxRunningTimeError({ maxRunningTime }: Pick<JobDocument, 'maxRunningTime'>): ChronosError {
  const limit = maxRunningTime ?? 0;
  const message = `all attempts of the job together exceeded its maxRunningTime of ${limit} ms`;
  return new ChronosError('JOB_RAN_TOO_LONG', message);
}
