import type { Clock } from '../../domain/clock.js';
import { isFinished, type JobStatus } from '../../domain/job/job.js';
import { integer } from '../../domain/validation.js';
import {
  type ExecutionSummary,
  toExecutionView,
  type ExecutionView,
  type JobView,
} from '../../jobs/job-views.js';
import { EXIT } from '../../process/exit.js';
import { interval, reader } from '../arguments.js';
import { type CommandResult, type CommandSpec, notFound } from '../command.js';
import type { Context, ReadOnlyScheduler } from '../context.js';
import { type Line, styled } from '../terminal/styled.js';
import { executionLine, statusSpan } from './job-views.js';
import { EXECUTION_FILTER, executionFilter } from './jobs.js';

const PAGE_SIZE = 200;
/** If more pages than this are new at once, the oldest rows are left out. */
const MAX_PAGES = 5;
/** Rows of several workers may arrive slightly out of order, so rows that were shown are recognized by their ids. */
const MAX_REMEMBERED_IDS = 2 * PAGE_SIZE * MAX_PAGES;
const FIRST_POLL_MS = 100;
const MAX_POLL_MS = 1000;
/** The row of the last attempt is written just after its job; polls to wait for it. */
const MAX_POLLS_FOR_LAST_ROW = 20;

export const tail: CommandSpec = {
  name: 'jobs tail',
  summary: 'Follow attempts as they end, or one job until it is finished',
  arguments: [{ name: '[id]', help: 'id of a job' }],
  options: [
    ...EXECUTION_FILTER.slice(1),
    {
      flags: '--lines <n>',
      help: 'start with the last n attempts (default: 10)',
      read: reader(integer(0, PAGE_SIZE)),
    },
    {
      flags: '--interval <duration>',
      help: 'how often to poll (default: 1s, at least 250ms)',
      read: interval,
    },
    { flags: '--no-follow', help: 'do not wait for more attempts' },
  ],
  examples: ['jobs tail --type sendEmail', 'jobs tail 66b0c1d2e3f4a5b6c7d8e9f0'],
  run: (context) => (context.args.words.length === 0 ? followAll(context) : followOne(context)),
};

async function followOne(context: Context): Promise<CommandResult | number> {
  const { args, clock, signal } = context;
  const events = watchJob(await context.scheduler(), args.word, clock, signal);
  for (let next = await events.next(); ; next = await events.next()) {
    if (next.done === true) return next.value === null ? notFound('job', args.word) : EXIT.success;
    if (context.isJson) context.out.documentLine(next.value);
    else context.out.lines(...eventLines(next.value));
  }
}

async function followAll(context: Context): Promise<number> {
  const { args, clock, signal } = context;
  const { operations } = await context.scheduler();
  const filter = executionFilter(args);
  const seen = new Set<string>();
  const show = (rows: readonly ExecutionSummary[]): void => {
    for (const row of rows.toReversed()) context.emit(row, executionLine(row));
  };
  const { executions } = await operations.listExecutions({ ...filter, limit: PAGE_SIZE });
  remember(seen, executions);
  show(executions.slice(0, args.number('lines') ?? 10));
  while (args.value('follow') !== false) {
    await clock.sleep(args.number('interval') ?? 1000, signal);
    if (signal.aborted) break;
    const { fresh, isComplete } = await findNewRows(operations, filter, seen);
    if (!isComplete)
      context.err.lines(
        styled('yellow', `… more than ${fresh.length} new attempts: the oldest are left out`),
      );
    remember(seen, fresh);
    show(fresh);
  }
  return EXIT.success;
}

/** Rows that were not seen yet, newest first. Reads pages until one contains a row that was seen. */
async function findNewRows(
  operations: ReadOnlyScheduler['operations'],
  filter: object,
  seen: ReadonlySet<string>,
): Promise<{ fresh: ExecutionSummary[]; isComplete: boolean }> {
  const fresh: ExecutionSummary[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const query = { ...filter, limit: PAGE_SIZE, ...(after !== undefined && { after }) };
    const { executions, next } = await operations.listExecutions(query);
    const unseen = executions.filter(({ id }) => !seen.has(id));
    fresh.push(...unseen);
    if (unseen.length < executions.length || next === null) return { fresh, isComplete: true };
    after = next;
  }
  return { fresh, isComplete: false };
}

function remember(seen: Set<string>, rows: readonly ExecutionSummary[]): void {
  for (const { id } of rows.toReversed()) seen.add(id);
  for (const id of seen) {
    if (seen.size <= MAX_REMEMBERED_IDS) return;
    seen.delete(id);
  }
}

export type JobEvent =
  | { event: 'status'; jobId: string; status: JobStatus }
  | { event: 'progress'; jobId: string; value: number; note: string | null }
  | { event: 'attempt'; jobId: string; execution: ExecutionView };

/** Yields what happens to a job until it is finished or deleted. Returns its last state; null if there is no such job. */
export async function* watchJob(
  scheduler: ReadOnlyScheduler,
  jobId: string,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<JobEvent, JobView | null> {
  const seen = new Set<string>();
  let before: JobView | undefined;
  let pollsAfterEnd = 0;
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(MAX_POLL_MS, pause * 1.5)) {
    const job = await scheduler.getJob(jobId);
    if (job === null) return null;
    if (job.status !== before?.status) yield { event: 'status', jobId, status: job.status };
    const { progress } = job;
    if (progress !== null && progress.at.getTime() !== before?.progress?.at.getTime())
      yield { event: 'progress', jobId, value: progress.value, note: progress.note };
    const isEnded = isFinished(job.status);
    if (isEnded || job.fence !== before?.fence || job.status !== before.status) {
      pause = FIRST_POLL_MS;
      for (const row of await scheduler.getExecutions(jobId)) {
        if (seen.has(row._id)) continue;
        seen.add(row._id);
        yield { event: 'attempt', jobId, execution: toExecutionView(row) };
      }
    }
    before = job;
    if (signal.aborted) return job;
    const hasLastRow = job.startedAt === null || seen.has(`${jobId}:${job.fence}`);
    if (isEnded && (hasLastRow || ++pollsAfterEnd > MAX_POLLS_FOR_LAST_ROW)) return job;
    await clock.sleep(pause, signal);
  }
}

export function eventLines(event: JobEvent): Line[] {
  switch (event.event) {
    case 'status':
      return [['status    ', statusSpan(event.status)]];
    case 'progress':
      return [[`progress  ${event.value}`, styled('dim', ` ${event.note ?? ''}`)]];
    case 'attempt':
      return [
        ...event.execution.log.map((line): Line => [styled('dim', 'log       '), line]),
        executionLine(event.execution),
      ];
  }
}
