import { assertNever } from './assert-never.js';
import { backoffDelay, type RetryPolicy } from './backoff.js';
import { isCancelJob, isSnoozeJob } from './control-flow.js';
import { ChronosError, toError } from './errors.js';
import type { JobDocument } from './job.js';
import { TRANSITIONS, type TransitionName } from './transitions.js';

/** What an attempt came to. The executor returns it, settling writes it. */
export type Outcome =
  | { kind: 'completed'; result: unknown }
  | { kind: 'retry'; error: Error; nextRunAt: Date }
  | { kind: 'failed'; error: Error }
  | { kind: 'cancelled'; reason: string }
  | { kind: 'skipped'; reason: string }
  | { kind: 'snoozed'; until: Date }
  | { kind: 'givenBack' };

export type OutcomeKind = Outcome['kind'];

export const TRANSITION_OF: Record<OutcomeKind, TransitionName> = {
  completed: 'complete',
  retry: 'retryLater',
  failed: 'fail',
  cancelled: 'stopRunning',
  skipped: 'skip',
  snoozed: 'snooze',
  givenBack: 'giveBack',
};

/** True when the job runs again after this outcome. */
export function goesOn(outcome: Outcome): boolean {
  return TRANSITIONS[TRANSITION_OF[outcome.kind]].to === 'SCHEDULED';
}

/** Why a handler's signal was aborted. It is the `reason` of the signal's abort, by its `kind`. */
export type AbortKind = 'timeout' | 'ranTooLong' | 'lockLost' | 'cancelled' | 'shutdown';

/** How a handler ended, before any policy is applied. */
export type Ending =
  | { kind: 'returned'; value: unknown }
  | { kind: 'threw'; thrown: unknown }
  /** It never ran, because the job can never succeed: a payload that does not fit, a limit already passed. */
  | { kind: 'refused'; error: Error }
  /** It never ran, because a filter said no. */
  | { kind: 'skipped'; reason: string }
  /** It did not end in time after its signal was aborted. */
  | { kind: 'stuck' };

export interface Judgement {
  ending: Ending;
  /** Set when the signal was aborted before the handler ended. */
  abort: { kind: AbortKind; error: Error } | undefined;
  job: Pick<JobDocument, 'attempts' | 'firstStartedAt' | 'maxRunningTime'>;
  /** Asked only when the attempt failed. */
  policy: () => RetryPolicy;
  now: Date;
  random: () => number;
}

/**
 * Applies the policies to the way a handler ended. Pure: time and chance come in. Once the signal was aborted the
 * outcome is the abort's, however the handler ended: one that returned early because of its signal did not complete.
 */
export function judge(judgement: Judgement): Outcome {
  const { ending, abort, now } = judgement;
  if (ending.kind === 'refused') return { kind: 'failed', error: ending.error };
  if (ending.kind === 'threw' && isCancelJob(ending.thrown))
    return { kind: 'cancelled', reason: ending.thrown.message };
  if (ending.kind === 'threw' && isSnoozeJob(ending.thrown)) {
    return { kind: 'snoozed', until: new Date(now.getTime() + (Number(ending.thrown.delay) || 0)) };
  }
  if (ending.kind === 'skipped') return { kind: 'skipped', reason: ending.reason };
  if (abort === undefined) {
    if (ending.kind === 'returned') return { kind: 'completed', result: ending.value };
    return failure(judgement, toError(ending.kind === 'threw' ? ending.thrown : undefined));
  }
  switch (abort.kind) {
    case 'cancelled':
      return { kind: 'cancelled', reason: abort.error.message };
    case 'shutdown':
    case 'lockLost':
      return { kind: 'givenBack' };
    case 'timeout':
    case 'ranTooLong':
      return failure(judgement, abort.error);
    default:
      return assertNever(abort.kind);
  }
}

function failure({ abort, job, now, random, ...rest }: Judgement, error: Error): Outcome {
  const attempt = job.attempts + 1;
  const policy = rest.policy();
  if (abort?.kind === 'ranTooLong' || attempt >= policy.max) return { kind: 'failed', error };
  const nextRunAt = new Date(now.getTime() + backoffDelay(policy, attempt, random));
  return runsTooLong(job, nextRunAt) ? { kind: 'failed', error } : { kind: 'retry', error, nextRunAt };
}

/** True when the job, all attempts together, would pass its limit by that instant. */
export function runsTooLong(job: Pick<JobDocument, 'firstStartedAt' | 'maxRunningTime'>, at: Date): boolean {
  return (
    job.maxRunningTime !== null &&
    job.firstStartedAt !== undefined &&
    at.getTime() >= job.firstStartedAt.getTime() + job.maxRunningTime
  );
}

export function ranTooLongError(limit: number): ChronosError {
  return new ChronosError(
    'JOB_RAN_TOO_LONG',
    `the job passed its maxRunningTime of ${limit} ms over all its attempts`,
  );
}
