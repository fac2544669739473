import type { ExecutionFilterOptions } from '../../config/query-options.js';
import { EXECUTION_OUTCOMES } from '../../domain/execution.js';
import { notFound, type CommandSpec, type OptionSpec } from '../command.js';
import type { Given } from '../given.js';
import { oneOf } from '../readers.js';
import { styled, type Line } from '../styled.js';
import { table } from '../table.js';
import { moment, span } from '../times.js';
import { executionColumns, outcomeSpan } from './executions-view.js';
import { PAGE, page } from './job-filter.js';
import { more } from './jobs-view.js';

export const EXECUTION_FILTER: readonly OptionSpec[] = [
  { flags: '--job <id>', help: 'of this job' },
  { flags: '--type <taskType>', help: 'of this task type' },
  { flags: '--queue <name>', help: 'of this queue' },
  { flags: '--worker <id>', help: 'in this worker' },
  {
    flags: '--outcome <outcome>',
    help: `that came to this: ${EXECUTION_OUTCOMES.join(', ')}`,
    read: oneOf(EXECUTION_OUTCOMES),
  },
];

export function executionFilter(given: Given): ExecutionFilterOptions {
  return given.picked({
    jobId: 'job',
    taskType: 'type',
    queue: 'queue',
    workerId: 'worker',
    outcome: 'outcome',
  });
}

export const executionCommands: readonly CommandSpec[] = [
  {
    name: 'executions list',
    summary: 'List attempts, the newest first',
    options: [...EXECUTION_FILTER, ...PAGE],
    examples: ['executions list --outcome failed', 'executions list --type sendEmail --limit 100 --json'],
    async run(context) {
      const { given } = context;
      const { operations } = await context.scheduler();
      const found = await operations.listExecutions({ ...executionFilter(given), ...page(given) });
      return {
        data: found,
        lines: ({ width, now }) =>
          found.executions.length === 0
            ? ['No executions.']
            : [...table(executionColumns(now), found.executions, width), ...more(found.next)],
      };
    },
  },
  {
    name: 'executions show',
    summary: 'Show one attempt with its log',
    arguments: [{ name: '<id>', help: 'of the attempt: <job>:<fence>' }],
    examples: ['executions show 66b0c1d2e3f4a5b6c7d8e9f0:1'],
    async run(context) {
      const { given } = context;
      const row = await (await context.scheduler()).operations.showExecution(given.word);
      if (row === null) return notFound('execution', given.word);
      return {
        data: row,
        lines: ({ now }): Line[] => [
          styled('bold', `execution ${row.id}`),
          [styled('dim', 'outcome    '), outcomeSpan(row.outcome), ` after ${span(row.duration)}`],
          [
            styled('dim', 'job        '),
            `${row.jobId} (${row.taskType} in ${row.queue}), attempt ${row.attempt}`,
          ],
          [styled('dim', 'worker     '), row.workerId],
          [styled('dim', 'began      '), moment(row.startedAt, now)],
          ...(row.error === null
            ? []
            : (row.error.stack ?? `${row.error.name}: ${row.error.message}`).split('\n')),
          ...row.log.map((line): Line => [styled('dim', '| '), line]),
        ],
      };
    },
  },
];
