import type { ExecutionFilterOptions, PageOptions } from '../../config/query-options.js';
import { EXECUTION_OUTCOMES } from '../../domain/execution.js';
import { LONGEST_JOB_ID } from '../../domain/names.js';
import type { ExecutionPage } from '../../operations/lists.js';
import type { ExecutionSummary, ExecutionView } from '../../operations/views.js';
import { amount, answer, date, input, list, oneOf, shown, text } from './schema.js';
import { cursor, limit, name, next, storedError } from './values.js';

const outcome = oneOf(...EXECUTION_OUTCOMES);

const summaryProperties = {
  id: shown('`<job>:<fence>`'),
  jobId: shown(),
  taskType: shown(),
  queue: shown(),
  attempt: amount(),
  fence: amount(),
  workerId: shown(),
  startedAt: date(),
  finishedAt: date(),
  duration: amount('milliseconds'),
  outcome,
  error: storedError,
};

export const executionSummary = answer<ExecutionSummary>(summaryProperties);
export const executionView = answer<ExecutionView>({ ...summaryProperties, log: list(shown()) });
export const executionPage = answer<ExecutionPage>({ executions: list(executionSummary), next });

export const executionQuery = input<ExecutionFilterOptions & PageOptions>({
  jobId: text(LONGEST_JOB_ID),
  taskType: name,
  queue: name,
  workerId: name,
  outcome,
  limit,
  after: cursor,
});

export const executionParams = input({ id: text(LONGEST_JOB_ID, '`<job>:<fence>`, percent-encoded') }, [
  'id',
]);
