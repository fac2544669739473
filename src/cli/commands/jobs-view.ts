import type { JobStatus } from '../../domain/job.js';
import { jsonText } from '../../domain/text.js';
import type { JobDetails, JobSummary } from '../../operations/views.js';
import type { View } from '../command.js';
import { printableJson } from '../../domain/printable.js';
import { styled, type Line, type Span, type Style } from '../styled.js';
import { table, type Column } from '../table.js';
import { instant, moment, NONE, relative } from '../times.js';
import { executionColumns } from './executions-view.js';

const STYLE_OF: Record<JobStatus, Style> = {
  PENDING: 'yellow',
  SCHEDULED: 'blue',
  QUEUED: 'cyan',
  RUNNING: 'cyan',
  COMPLETED: 'green',
  FAILED: 'red',
  CANCELLED: 'dim',
};

export function statusSpan(status: JobStatus): Span {
  return styled(STYLE_OF[status], status);
}

export function jobTable(jobs: readonly JobSummary[], next: string | null, { width, now }: View): Line[] {
  if (jobs.length === 0) return ['No jobs.'];
  const columns: Column<JobSummary>[] = [
    { title: 'id', cell: ({ id }) => id, keep: true },
    { title: 'type', cell: ({ taskType }) => taskType },
    { title: 'queue', cell: ({ queue }) => queue },
    { title: 'status', cell: ({ status }) => statusSpan(status), keep: true },
    { title: 'pri', cell: ({ priority }) => String(priority), align: 'right' },
    { title: 'tries', cell: ({ attempts, crashes }) => String(attempts + crashes), align: 'right' },
    { title: 'when', cell: (job) => relative(timeOf(job), now), align: 'right' },
    { title: 'note', cell: noteOf },
  ];
  return [...table(columns, jobs, width), ...more(next)];
}

/** The line under a page that is not the last. */
export function more(next: string | null): Line[] {
  return next === null ? [] : [styled('dim', `More: --after ${next}`)];
}

export function jobLines({ job, executions }: JobDetails, view: View): Line[] {
  const { now, width } = view;
  const facts: readonly (readonly [string, Span | null])[] = [
    ['status', statusSpan(job.status)],
    ['type', job.taskType],
    ['queue', `${job.queue}, priority ${job.priority}`],
    ['due', moment(job.nextRunAt, now)],
    ['created', moment(job.createdAt, now)],
    ['started', job.startedAt && moment(job.startedAt, now)],
    ['finished', job.finishedAt && moment(job.finishedAt, now)],
    ['schedule', job.schedule],
    ['for', job.scheduledFor && instant(job.scheduledFor)],
    ['user', job.userId],
    ['locked by', job.lockedBy && `${job.lockedBy} until ${moment(job.lockedUntil, now)}`],
    ['counts', `${job.attempts} failed, ${job.crashes} crashed, fence ${job.fence}`],
    ['progress', job.progress && `${job.progress.value} ${job.progress.note ?? ''}`],
    ['note', noteOf(job) === '' ? null : noteOf(job)],
  ];
  return [
    styled('bold', `job ${job.id}`),
    ...facts.flatMap(([name, value]): Line[] =>
      value === null ? [] : [[styled('dim', name.padEnd(11)), value]],
    ),
    ...block('payload', job.payload),
    ...(job.status === 'COMPLETED' ? block('result', job.result) : []),
    ...(executions.length === 0 ? [] : ['', ...table(executionColumns(now), executions, width)]),
    ...executions.flatMap(({ log }) => log.map((line): Line => [styled('dim', '  | '), line])),
  ];
}

/** What the time of a list is about: when it ended, began, or is due. */
function timeOf({ finishedAt, startedAt, status, nextRunAt }: JobSummary): Date {
  return finishedAt ?? (status === 'RUNNING' ? (startedAt ?? nextRunAt) : nextRunAt);
}

function noteOf(job: JobSummary): string {
  const { held, cancelRequested, skipReason, error, status, progress } = job;
  if (held !== null) return `held${held.reason === null ? '' : `: ${held.reason}`}`;
  if (status === 'RUNNING' && progress !== null) return `at ${progress.value} ${progress.note ?? ''}`.trim();
  if (skipReason !== null) return `skipped: ${skipReason}`;
  if (cancelRequested !== null)
    return `cancel asked for${cancelRequested.reason === null ? '' : `: ${cancelRequested.reason}`}`;
  return error === null ? '' : `${error.name}: ${error.message}`;
}

function block(title: string, value: unknown): Line[] {
  const json = value === null || value === undefined ? NONE : printableJson(value);
  return jsonText(value).length < 60
    ? [[styled('dim', title.padEnd(11)), value === null ? NONE : jsonText(value)]]
    : [styled('dim', title), ...json.split('\n').map((line) => `  ${line}`)];
}
