import { notFound, type CommandSpec } from '../command.js';
import { styled, type Line } from '../styled.js';
import { JOB_FILTER, jobFilter, PAGE, page, STATUS_FILTER } from './job-filter.js';
import { jobLines, jobTable, statusSpan } from './jobs-view.js';

const ID = { name: '<id>', help: 'of the job' };

export const jobCommands: readonly CommandSpec[] = [
  {
    name: 'jobs list',
    summary: 'List jobs: those that wait as they are due, finished ones with the newest first',
    options: [STATUS_FILTER, ...JOB_FILTER, ...PAGE],
    examples: ['jobs list --status scheduled --queue mail', 'jobs list --schedule daily-report --json'],
    async run(context) {
      const { given } = context;
      const { operations } = await context.scheduler();
      const found = await operations.listJobs({ ...jobFilter(given), ...page(given) });
      return { data: found, lines: (view) => jobTable(found.jobs, found.next, view) };
    },
  },
  {
    name: 'jobs show',
    summary: 'Show a job with its payload, result and attempts',
    arguments: [ID],
    examples: ['jobs show 66b0c1d2e3f4a5b6c7d8e9f0'],
    async run(context) {
      const { word } = context.given;
      const details = await (await context.scheduler()).operations.showJob(word);
      if (details === null) return notFound('job', word);
      return { data: details, lines: (view) => jobLines(details, view) };
    },
  },
  {
    name: 'jobs explain',
    summary: 'Say why a job does not run, and when it will',
    arguments: [{ name: '<id>', help: 'of the job, or of an occurrence: <schedule>@<time>' }],
    examples: ['jobs explain 66b0c1d2e3f4a5b6c7d8e9f0', 'jobs explain daily-report@2026-12-01T02:00:00.000Z'],
    async run(context) {
      const { word } = context.given;
      const explanation = await (await context.scheduler()).operations.explainJob(word);
      if (explanation === null) return notFound('job', word);
      const { sentence, status, checked } = explanation;
      return {
        data: explanation,
        lines: (): Line[] => [
          [status === null ? styled('dim', 'NOT MADE YET') : statusSpan(status), `  ${sentence}`],
          '',
          ...checked.map(({ gate, passed, sentence: said }): Line => [
            passed ? styled('green', '✔ ') : styled('yellow', '✖ '),
            styled('dim', `${gate}: `),
            said,
          ]),
        ],
      };
    },
  },
];

export const deadCommands: readonly CommandSpec[] = [
  {
    name: 'dead list',
    summary: 'List jobs that failed for good, the newest first',
    options: [...JOB_FILTER, ...PAGE],
    examples: ['dead list --type sendEmail'],
    async run(context) {
      const { given } = context;
      const { operations } = await context.scheduler();
      const { status: _, ...filter } = jobFilter(given);
      const found = await operations.listDead({ ...filter, ...page(given) });
      return { data: found, lines: (view) => jobTable(found.jobs, found.next, view) };
    },
  },
];
