import type { ExecutionDocument } from '../../domain/execution.js';
import type { ExecutionSummary } from '../../operations/views.js';
import { styled, type Line, type Span, type Style } from '../styled.js';
import type { Column } from '../table.js';
import { relative, span } from '../times.js';

const STYLE_OF: Partial<Record<ExecutionDocument['outcome'], Style>> = {
  completed: 'green',
  failed: 'red',
  crashed: 'red',
  retry: 'yellow',
};

export function outcomeSpan(outcome: ExecutionDocument['outcome']): Span {
  return styled(STYLE_OF[outcome] ?? 'dim', outcome);
}

export function executionColumns(now: Date): Column<ExecutionSummary>[] {
  return [
    { title: 'execution', cell: ({ id }) => id, keep: true },
    { title: 'type', cell: ({ taskType }) => taskType },
    { title: 'try', cell: ({ attempt }) => String(attempt), align: 'right' },
    { title: 'outcome', cell: ({ outcome }) => outcomeSpan(outcome), keep: true },
    { title: 'took', cell: ({ duration }) => span(duration), align: 'right' },
    { title: 'ended', cell: ({ finishedAt }) => relative(finishedAt, now), align: 'right' },
    { title: 'worker', cell: ({ workerId }) => workerId },
    { title: 'error', cell: ({ error }) => (error === null ? '' : `${error.name}: ${error.message}`) },
  ];
}

/** One attempt in one line, as it is followed. */
export function executionLine(row: ExecutionSummary): Line {
  const { finishedAt, taskType, outcome, attempt, duration, jobId, error } = row;
  return [
    styled('dim', `${finishedAt.toISOString().slice(11, 23)}  `),
    outcomeSpan(outcome),
    `  ${taskType}  ${jobId}  attempt ${attempt}, ${span(duration)}`,
    ...(error === null ? [] : [styled('red', `  ${error.name}: ${error.message}`)]),
  ];
}
