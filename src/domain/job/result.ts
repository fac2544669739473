import { ChronosError, type StoredError } from '../errors.js';
import { assertNever } from '../language.js';
import type { FinishedJob } from './job.js';

/** The error of a FAILED job, as the handler threw it: name, message, code and stack are those of the last attempt. */
export class JobFailedError extends Error {
  override readonly name: string;
  readonly jobId: string;
  /** The code of the handler's error as text, if it had one. */
  readonly code: string | undefined;

  constructor(jobId: string, error: StoredError) {
    const { name, message, code, stack } = error;
    super(message);
    this.name = name;
    this.jobId = jobId;
    this.code = code ?? undefined;
    if (stack !== null) this.stack = stack;
  }
}

/** A FAILED job has an error unless somebody else wrote the document. */
const NO_ERROR: StoredError = {
  ...{ name: 'Error', message: 'the job failed without a stored error', code: null, stack: null },
};

/** What the handler of a finished job returned. Throws if the job has no result, or if the result is not complete. */
export function resultOf(job: FinishedJob): unknown {
  const { _id, status, result, resultCut } = job;
  switch (status) {
    case 'COMPLETED':
      if (!resultCut) return result;
      throw new ChronosError(
        'RESULT_CUT',
        `job '${_id}' completed, but only the beginning of its result is stored, because it is too large or cannot be stored. Return less, for example the id of a document; wait() and getJob() show the stored part`,
      );
    case 'FAILED':
      throw new JobFailedError(_id, job.error ?? NO_ERROR);
    case 'CANCELLED':
      throw cancelledError(job);
    default:
      return assertNever(status);
  }
}

function cancelledError({ _id, cancelKind, cancelRequested, skipReason }: FinishedJob): ChronosError {
  switch (cancelKind) {
    case 'skipped':
      return new ChronosError('JOB_SKIPPED', `job '${_id}' was skipped: ${skipReason ?? 'no reason given'}`);
    case 'expired':
      return new ChronosError('JOB_EXPIRED', `job '${_id}' expired: it had not started in time`);
    case 'cancelled':
    case null: {
      const reason = cancelRequested?.reason ?? 'no reason given';
      return new ChronosError('JOB_CANCELLED', `job '${_id}' was cancelled: ${reason}`);
    }
    default:
      return assertNever(cancelKind);
  }
}
