import type { ExecutionFilterOptions } from '../../config/query-options.js';
import { EXECUTION_OUTCOMES } from '../../domain/job/execution.js';
import { oneOf } from '../../domain/validation.js';
import { type Arguments, option } from '../arguments.js';
import { type CommandSpec, notFound } from '../command.js';
import { formatMoment, formatDuration } from '../terminal/format.js';
import { factLines, type Line, styled } from '../terminal/styled.js';
import { table } from '../terminal/table.js';
import { JOB_FILTER, jobFilter, page, PAGE, STATE_FILTER } from './filters.js';
import { executionColumns, jobLines, jobTable, nextPageHint, outcomeSpan, stateSpan } from './job-views.js';

const JOB_ID = { name: '<id>', help: 'id of the job' };

export const jobCommands: readonly CommandSpec[] = [
  {
    name: 'jobs list',
    summary: 'List jobs: waiting ones in the order they are due, finished ones newest first',
    options: [STATE_FILTER, ...JOB_FILTER, ...PAGE],
    examples: ['jobs list --state waiting --queue mail', 'jobs list --schedule daily-report --json'],
    async run(context) {
      const { args } = context;
      const found = await (await context.operations()).listJobs({ ...jobFilter(args), ...page(args) });
      return { data: found, lines: (view) => jobTable(found.items, found.next, view) };
    },
  },
  {
    name: 'jobs show',
    summary: 'Show a job with its payload, result and attempts',
    arguments: [JOB_ID],
    examples: ['jobs show 66b0c1d2e3f4a5b6c7d8e9f0'],
    async run(context) {
      const { first: id } = context.args;
      const details = await (await context.operations()).showJob(id);
      if (details === null) return notFound('job', id);
      return { data: details, lines: (view) => jobLines(details, view) };
    },
  },
  {
    name: 'jobs explain',
    summary: 'Explain why a job is not running, and when it will run',
    arguments: [{ name: '<id>', help: 'id of the job, or an occurrence: <schedule>@<time>' }],
    examples: ['jobs explain 66b0c1d2e3f4a5b6c7d8e9f0', 'jobs explain daily-report@2026-12-01T02:00:00.000Z'],
    async run(context) {
      const { first: id } = context.args;
      const explanation = await (await context.operations()).explainJob(id);
      if (explanation === null) return notFound('job', id);
      const { sentence, state, checked } = explanation;
      return {
        data: explanation,
        lines: (): Line[] => [
          [state === null ? styled('dim', 'no job yet') : stateSpan(state), `  ${sentence}`],
          '',
          ...checked.map(({ check, passed, sentence: finding }): Line => [
            passed ? styled('green', '✔ ') : styled('yellow', '✖ '),
            styled('dim', `${check}: `),
            finding,
          ]),
        ],
      };
    },
  },
];

export const deadList: CommandSpec = {
  name: 'dead list',
  summary: 'List failed jobs, newest first',
  options: [...JOB_FILTER, ...PAGE],
  examples: ['dead list --type sendEmail'],
  async run(context) {
    const { args } = context;
    const found = await (await context.operations()).listDead({ ...jobFilter(args), ...page(args) });
    return { data: found, lines: (view) => jobTable(found.items, found.next, view) };
  },
};

export const EXECUTION_FILTER = [
  option('--job <id>', 'of this job'),
  option('--type <taskType>', 'of this task type'),
  option('--queue <name>', 'of this queue'),
  option('--worker <id>', 'of this worker'),
  option(
    '--outcome <outcome>',
    `with this outcome: ${EXECUTION_OUTCOMES.join(', ')}`,
    oneOf(...EXECUTION_OUTCOMES),
  ),
];

export function executionFilter(args: Arguments): ExecutionFilterOptions {
  return {
    ...args.pick('queue', 'outcome'),
    ...args.pickAs({ jobId: 'job', taskType: 'type', workerId: 'worker' }),
  };
}

export const executionCommands: readonly CommandSpec[] = [
  {
    name: 'executions list',
    summary: 'List attempts, newest first',
    options: [...EXECUTION_FILTER, ...PAGE],
    examples: ['executions list --outcome failed', 'executions list --type sendEmail --limit 100 --json'],
    async run(context) {
      const { args } = context;
      const operations = await context.operations();
      const found = await operations.listExecutions({ ...executionFilter(args), ...page(args) });
      return {
        data: found,
        lines: ({ width, now }) =>
          found.items.length === 0
            ? ['No executions.']
            : [...table(executionColumns(now), found.items, width), ...nextPageHint(found.next)],
      };
    },
  },
  {
    name: 'executions show',
    summary: 'Show one attempt with its log',
    arguments: [{ name: '<id>', help: 'id of the attempt: <job>:<fence>' }],
    examples: ['executions show 66b0c1d2e3f4a5b6c7d8e9f0:1'],
    async run(context) {
      const { args } = context;
      const row = await (await context.operations()).showExecution(args.first);
      if (row === null) return notFound('execution', args.first);
      return {
        data: row,
        lines: ({ now }): Line[] => [
          styled('bold', `execution ${row.id}`),
          ...factLines([
            ['outcome', [outcomeSpan(row.outcome), ` after ${formatDuration(row.duration)}`]],
            ['job', `${row.jobId} (${row.taskType} in ${row.queue}), attempt ${row.attempt}`],
            ['worker', row.workerId],
            ['started', formatMoment(row.startedAt, now)],
          ]),
          // Indented: a stored stack may contain any lines, also such as those above.
          ...(row.error === null
            ? []
            : (row.error.stack ?? `${row.error.name}: ${row.error.message}`)
                .split('\n')
                .map((line) => `  ${line}`)),
          ...row.log.map((line): Line => [styled('dim', '| '), line]),
        ],
      };
    },
  },
];
