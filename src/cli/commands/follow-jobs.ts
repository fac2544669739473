import { isFinished } from '../../domain/job/job.js';
import type { JobState } from '../../domain/job/state.js';
import { integer } from '../../domain/validation.js';
import type { ExecutionSummary, ExecutionView, JobView } from '../../jobs/job-views.js';
import { EXIT } from '../../process/exit.js';
import { interval, option } from '../arguments.js';
import { type CommandResult, type CommandSpec, notFound } from '../command.js';
import type { Context, ReadOnlyOperations } from '../context.js';
import { type Line, styled } from '../terminal/styled.js';
import { executionLine, stateSpan } from './job-views.js';
import { EXECUTION_FILTER, executionFilter } from './jobs.js';

const PAGE_SIZE = 200;
/** If one poll finds more new pages than this, the oldest rows are not shown. */
const MAX_PAGES = 5;
/** Rows of different workers may arrive out of order, so shown rows are recognized by their ids, not by time. */
const MAX_REMEMBERED_IDS = 2 * PAGE_SIZE * MAX_PAGES;
const FIRST_POLL_MS = 100;
const MAX_POLL_MS = 1000;

export const tail: CommandSpec = {
  name: 'jobs tail',
  summary: 'Follow attempts as they end, or one job until it is finished',
  arguments: [{ name: '[id]', help: 'id of a job' }],
  options: [
    ...EXECUTION_FILTER.slice(1),
    option('--lines <n>', 'start with the last n attempts (default: 10)', integer(0, PAGE_SIZE)),
    option('--interval <duration>', 'how often to poll (default: 1s, at least 250ms)', interval),
    option('--no-follow', 'do not wait for more attempts'),
  ],
  examples: ['jobs tail --type sendEmail', 'jobs tail 66b0c1d2e3f4a5b6c7d8e9f0'],
  run: (context) => (context.args.positionals.length === 0 ? followAll(context) : followOne(context)),
};

async function followOne(context: Context): Promise<CommandResult | number> {
  const { first: id } = context.args;
  const job = await watchJob(context, id, (event) => context.emit(event, ...eventLines(event)));
  return job === null ? notFound('job', id) : EXIT.success;
}

async function followAll(context: Context): Promise<number> {
  const { args, clock, signal } = context;
  const operations = await context.operations();
  const filter = executionFilter(args);
  const seen = new Set<string>();
  const show = (rows: readonly ExecutionSummary[]): void => {
    for (const row of rows.toReversed()) context.emit(row, executionLine(row));
  };
  const { items } = await operations.listExecutions({ ...filter, limit: PAGE_SIZE });
  remember(seen, items);
  show(items.slice(0, args.number('lines') ?? 10));
  while (args.value('follow') !== false) {
    await clock.sleep(args.number('interval') ?? 1000, signal);
    if (signal.aborted) break;
    const { fresh, isComplete } = await findNewRows(operations, filter, seen);
    if (!isComplete)
      context.err.lines(
        styled('yellow', `… more than ${fresh.length} new attempts, the oldest are not shown`),
      );
    remember(seen, fresh);
    show(fresh);
  }
  return EXIT.success;
}

/** New rows, newest first. Reads pages until one contains a row that was already seen. */
async function findNewRows(
  operations: ReadOnlyOperations,
  filter: object,
  seen: ReadonlySet<string>,
): Promise<{ fresh: ExecutionSummary[]; isComplete: boolean }> {
  const fresh: ExecutionSummary[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const query = { ...filter, limit: PAGE_SIZE, ...(after !== undefined && { after }) };
    const { items, next } = await operations.listExecutions(query);
    const unseen = items.filter(({ id }) => !seen.has(id));
    fresh.push(...unseen);
    if (unseen.length < items.length || next === null) return { fresh, isComplete: true };
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
  | { event: 'state'; jobId: string; state: JobState }
  | { event: 'progress'; jobId: string; value: number; note: string | null }
  | { event: 'attempt'; jobId: string; execution: ExecutionView };

/** Reports events of a job until it is finished, or Ctrl-C. Resolves to its last state; null if it does not exist. */
export async function watchJob(
  context: Context,
  jobId: string,
  report: (event: JobEvent) => void,
): Promise<JobView | null> {
  const { clock, signal } = context;
  const scheduler = await context.scheduler();
  const seen = new Set<string>();
  let before: JobView | undefined;
  let finished: JobView | undefined;
  const ended = new AbortController();
  // When this resolves, the last attempt can be read. It rejects if the job is removed, which the next poll finds, too.
  void scheduler
    .job(jobId)
    .wait()
    .then(
      (job) => {
        finished = job;
        ended.abort();
      },
      () => undefined,
    );
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(MAX_POLL_MS, pause * 1.5)) {
    const job = finished ?? (await scheduler.getJob(jobId));
    if (job === null) return null;
    if (job.state !== before?.state) report({ event: 'state', jobId, state: job.state });
    const { progress } = job;
    if (progress !== null && progress.at.getTime() !== before?.progress?.at.getTime())
      report({ event: 'progress', jobId, value: progress.value, note: progress.note });
    const isEnded = isFinished(job.status);
    if (isEnded || job.fence !== before?.fence || job.status !== before.status) {
      pause = FIRST_POLL_MS;
      for (const row of await scheduler.getExecutions(jobId)) {
        if (seen.has(row.id)) continue;
        seen.add(row.id);
        report({ event: 'attempt', jobId, execution: row });
      }
    }
    before = job;
    if (signal.aborted || job === finished) return job;
    await clock.sleep(pause, AbortSignal.any([signal, ended.signal]));
  }
}

export function eventLines(event: JobEvent): Line[] {
  switch (event.event) {
    case 'state':
      return [['state     ', stateSpan(event.state)]];
    case 'progress':
      return [[`progress  ${event.value}`, styled('dim', ` ${event.note ?? ''}`)]];
    case 'attempt':
      return [
        ...event.execution.log.map((line): Line => [styled('dim', 'log       '), line]),
        executionLine(event.execution),
      ];
  }
}
