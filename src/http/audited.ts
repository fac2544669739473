import type { Operations } from '../operations/operations.js';
import { toError } from '../domain/errors.js';
import { HttpProblem, statusOf } from './problem.js';
import type { AuditDetails } from './route.js';

export interface AuditedChange<A> {
  operations: Pick<Operations, 'audit'>;
  who: string;
  /** What the change is called. */
  action: string;
  requestId: string;
  before: AuditDetails;
  change: () => Promise<A>;
  after: (answer: A) => AuditDetails;
}

/**
 * First that somebody tries, then the change, then what came of it: there is no change that nobody wrote down. An
 * attempt without a second entry of the same request says that the process, or the database, was gone in between.
 */
export async function audited<A>(given: AuditedChange<A>): Promise<{ answer: A; isRecorded: boolean }> {
  const { operations, who, action, requestId, before, change, after } = given;
  const note = (step: string, details: AuditDetails): Promise<unknown> =>
    operations.audit({ who, action: `${action}${step}`, requestId, ...details });
  await note(':attempted', before).catch(unwritable);
  try {
    const answer = await change();
    const isRecorded = await succeeds(note('', { ...before, ...after(answer) }));
    return { answer, isRecorded };
  } catch (error) {
    // Refused, nothing was changed. After any other error that is not known, and the attempt alone says so.
    if (statusOf(toError(error)) < 500) await succeeds(note(':refused', before));
    throw error;
  }
}

function unwritable(cause: unknown): never {
  const detail = 'nothing was changed: that somebody tries could not be written into the audit collection';
  throw new HttpProblem(503, 'AUDIT_UNWRITABLE', detail, { cause });
}

/** The change is made: failing now would only have it asked for again. */
function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}
