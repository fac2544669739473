import type { ExecutionDocument } from '../../domain/job/execution.js';

/** A row of the execution log in the collection. */
export type StoredExecution = Omit<ExecutionDocument, 'error' | 'log'> &
  Partial<Pick<ExecutionDocument, 'error' | 'log'>>;

/** The row of an attempt as it is stored: without an error or lines that do not exist. Written field by field for speed. */
export function toStoredExecution(row: ExecutionDocument): StoredExecution {
  const stored: StoredExecution = {
    _id: row._id,
    jobId: row.jobId,
    taskType: row.taskType,
    queue: row.queue,
    attempt: row.attempt,
    fence: row.fence,
    lockToken: row.lockToken,
    workerId: row.workerId,
    startedAt: row.startedAt,
    finishedAt: row.finishedAt,
    duration: row.duration,
    outcome: row.outcome,
  };
  if (row.error !== null) stored.error = row.error;
  if (row.log.length > 0) stored.log = row.log;
  if (row.reconstructed) stored.reconstructed = true;
  return stored;
}

/** The row with the defaults of absent fields. */
export function readExecution(row: StoredExecution): ExecutionDocument {
  return { ...row, error: row.error ?? null, log: row.log ?? [] };
}
