import type { ExecutionSummary } from '../../operations/views.js';
import { EXIT } from '../../process/exit.js';
import { notFound, type Answer, type CommandSpec } from '../command.js';
import type { Context } from '../context.js';
import { interval, wholeNumber } from '../readers.js';
import type { Reading } from '../reading.js';
import { styled } from '../styled.js';
import { executionFilter, EXECUTION_FILTER } from './executions.js';
import { executionLine } from './executions-view.js';
import { eventLines, watchJob } from './watch-job.js';

const PAGE = 200;
/** What comes faster than this many pages between two looks is not shown row by row. */
const MOST_PAGES = 5;
/** Rows of several workers come a little out of order: those seen before are known by their ids. */
const REMEMBERED = 2 * PAGE * MOST_PAGES;

export const tail: CommandSpec = {
  name: 'jobs tail',
  summary: 'Follow attempts as they end, or one job until it is finished',
  arguments: [{ name: '[id]', help: 'of a job' }],
  options: [
    ...EXECUTION_FILTER.slice(1),
    { flags: '--lines <n>', help: 'begin with the last ones (default: 10)', read: wholeNumber(0, PAGE) },
    {
      flags: '--interval <duration>',
      help: 'how often to look (default: 1s, at least 250ms)',
      read: interval,
    },
    { flags: '--no-follow', help: 'do not wait for more' },
  ],
  examples: ['jobs tail --type sendEmail', 'jobs tail 66b0c1d2e3f4a5b6c7d8e9f0'],
  run: (context) => (context.given.words.length === 0 ? followAll(context) : followOne(context)),
};

async function followOne(context: Context): Promise<Answer | number> {
  const { given, clock, signal } = context;
  const events = watchJob(await context.scheduler(), given.word, clock, signal);
  for (let next = await events.next(); ; next = await events.next()) {
    if (next.done === true) return next.value === null ? notFound('job', given.word) : EXIT.fine;
    if (context.isJson) context.out.documentLine(next.value);
    else context.out.lines(...eventLines(next.value));
  }
}

async function followAll(context: Context): Promise<number> {
  const { given, clock, signal } = context;
  const { operations } = await context.scheduler();
  const filter = executionFilter(given);
  const seen = new Set<string>();
  const show = (rows: readonly ExecutionSummary[]): void => {
    for (const row of rows.toReversed()) context.emit(row, executionLine(row));
  };
  const { executions } = await operations.listExecutions({ ...filter, limit: PAGE });
  remember(seen, executions);
  show(executions.slice(0, given.number('lines') ?? 10));
  while (given.value('follow') !== false) {
    await clock.sleep(given.number('interval') ?? 1000, signal);
    if (signal.aborted) break;
    const { fresh, isCut } = await newRows(operations, filter, seen);
    if (isCut)
      context.err.lines(styled('yellow', `… more than ${fresh.length} at once: the oldest are left out`));
    remember(seen, fresh);
    show(fresh);
  }
  return EXIT.fine;
}

/** What was logged since, the newest first: page after page until one has nothing new. */
async function newRows(
  operations: Reading['operations'],
  filter: object,
  seen: ReadonlySet<string>,
): Promise<{ fresh: ExecutionSummary[]; isCut: boolean }> {
  const fresh: ExecutionSummary[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const query = { ...filter, limit: PAGE, ...(after !== undefined && { after }) };
    const { executions, next } = await operations.listExecutions(query);
    const unseen = executions.filter(({ id }) => !seen.has(id));
    fresh.push(...unseen);
    if (unseen.length < executions.length || next === null) return { fresh, isCut: false };
    after = next;
  }
  return { fresh, isCut: true };
}

function remember(seen: Set<string>, rows: readonly ExecutionSummary[]): void {
  for (const { id } of rows.toReversed()) seen.add(id);
  for (const id of seen) {
    if (seen.size <= REMEMBERED) return;
    seen.delete(id);
  }
}
