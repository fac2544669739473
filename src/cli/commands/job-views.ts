import type { ExecutionOutcome } from '../../domain/job/execution.js';
import type { JobState } from '../../domain/job/state.js';
import { jsonText, printableJson } from '../../domain/text.js';
import type { ExecutionSummary, JobDetails, JobSummary } from '../../jobs/job-views.js';
import type { View } from '../command.js';
import { instant, formatMoment, NONE, formatRelative, formatDuration } from '../terminal/format.js';
import { factLines, type Line, type Span, type Style, styled } from '../terminal/styled.js';
import { type Column, table } from '../terminal/table.js';

const STATE_STYLES: Record<JobState, Style> = {
  waiting: 'blue',
  delayed: 'blue',
  retrying: 'yellow',
  held: 'yellow',
  blocked: 'yellow',
  prefetched: 'cyan',
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  cancelled: 'dim',
  skipped: 'dim',
  expired: 'dim',
};

export function stateSpan(state: JobState): Span {
  return styled(STATE_STYLES[state], state);
}

export function jobTable(jobs: readonly JobSummary[], next: string | null, { width, now }: View): Line[] {
  if (jobs.length === 0) return ['No jobs.'];
  const columns: Column<JobSummary>[] = [
    { title: 'id', cell: ({ id }) => id, keep: true },
    { title: 'type', cell: ({ taskType }) => taskType },
    { title: 'queue', cell: ({ queue }) => queue },
    { title: 'state', cell: ({ state }) => stateSpan(state), keep: true },
    { title: 'pri', cell: ({ priority }) => String(priority), align: 'right' },
    { title: 'tries', cell: ({ attempts, crashes }) => String(attempts + crashes), align: 'right' },
    { title: 'when', cell: (job) => formatRelative(relevantTime(job), now), align: 'right' },
    { title: 'note', cell: toNote },
  ];
  return [...table(columns, jobs, width), ...nextPageHint(next)];
}

export function nextPageHint(next: string | null): Line[] {
  return next === null ? [] : [styled('dim', `More: --after ${next}`)];
}

export function jobLines({ job, executions }: JobDetails, view: View): Line[] {
  const { now, width } = view;
  const note = toNote(job);
  const facts = factLines([
    ['state', stateSpan(job.state)],
    ['type', job.taskType],
    ['queue', `${job.queue}, priority ${job.priority}`],
    ['due', formatMoment(job.nextRunAt, now)],
    ['created', formatMoment(job.createdAt, now)],
    ['started', job.startedAt && formatMoment(job.startedAt, now)],
    ['finished', job.finishedAt && formatMoment(job.finishedAt, now)],
    ['schedule', job.schedule],
    ['for', job.scheduledFor && instant(job.scheduledFor)],
    ['user', job.userId],
    ['tags', job.tags.length === 0 ? null : job.tags.join(', ')],
    ['expires', job.expiresAt && formatMoment(job.expiresAt, now)],
    ['locked by', job.lockedBy && `${job.lockedBy} until ${formatMoment(job.lockedUntil, now)}`],
    ['counts', `${job.attempts} failed, ${job.crashes} crashed, fence ${job.fence}`],
    ['progress', job.progress && `${job.progress.value} ${job.progress.note ?? ''}`],
    ['note', note === '' ? null : note],
  ]);
  return [
    styled('bold', `job ${job.id}`),
    ...facts,
    ...jsonLines('payload', job.payload),
    ...(job.status === 'COMPLETED' ? jsonLines('result', job.result) : []),
    ...(executions.length === 0 ? [] : ['', ...table(executionColumns(now), executions, width)]),
    ...executions.flatMap(({ log }) => log.map((line): Line => [styled('dim', '  | '), line])),
  ];
}

/** When the job finished, started (if it is running), or is due. */
function relevantTime({ finishedAt, startedAt, status, nextRunAt }: JobSummary): Date {
  return finishedAt ?? (status === 'RUNNING' ? (startedAt ?? nextRunAt) : nextRunAt);
}

function toNote(job: JobSummary): string {
  const { held, cancelRequested, skipReason, error, status, progress, invalid } = job;
  if (invalid !== null) return `invalid: ${invalid}`;
  if (held !== null) return `held${held.reason === null ? '' : `: ${held.reason}`}`;
  if (status === 'RUNNING' && progress !== null) return `at ${progress.value} ${progress.note ?? ''}`.trim();
  if (skipReason !== null) return `skipped: ${skipReason}`;
  if (cancelRequested !== null)
    return `cancel requested${cancelRequested.reason === null ? '' : `: ${cancelRequested.reason}`}`;
  return error === null ? '' : `${error.name}: ${error.message}`;
}

/** JSON on one line if it is short, else indented. */
function jsonLines(title: string, value: unknown): Line[] {
  const text = value === null ? NONE : jsonText(value);
  if (text.length < 60) return factLines([[title, text]]);
  return [
    styled('dim', title),
    ...printableJson(value)
      .split('\n')
      .map((line) => `  ${line}`),
  ];
}

const OUTCOME_STYLES: Partial<Record<ExecutionOutcome, Style>> = {
  completed: 'green',
  failed: 'red',
  crashed: 'red',
  retry: 'yellow',
};

export function outcomeSpan(outcome: ExecutionOutcome): Span {
  return styled(OUTCOME_STYLES[outcome] ?? 'dim', outcome);
}

export function executionColumns(now: Date): Column<ExecutionSummary>[] {
  return [
    { title: 'execution', cell: ({ id }) => id, keep: true },
    { title: 'type', cell: ({ taskType }) => taskType },
    { title: 'try', cell: ({ attempt }) => String(attempt), align: 'right' },
    { title: 'outcome', cell: ({ outcome }) => outcomeSpan(outcome), keep: true },
    { title: 'took', cell: ({ duration }) => formatDuration(duration), align: 'right' },
    { title: 'ended', cell: ({ finishedAt }) => formatRelative(finishedAt, now), align: 'right' },
    { title: 'worker', cell: ({ workerId }) => workerId },
    { title: 'error', cell: ({ error }) => (error === null ? '' : `${error.name}: ${error.message}`) },
  ];
}

/** One attempt in one line, for `jobs tail`. */
export function executionLine(row: ExecutionSummary): Line {
  const { finishedAt, taskType, outcome, attempt, duration, jobId, error } = row;
  return [
    styled('dim', `${finishedAt.toISOString().slice(11, 23)}  `),
    outcomeSpan(outcome),
    `  ${taskType}  ${jobId}  attempt ${attempt}, ${formatDuration(duration)}`,
    ...(error === null ? [] : [styled('red', `  ${error.name}: ${error.message}`)]),
  ];
}
