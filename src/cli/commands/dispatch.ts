import { type DispatchOptions, dispatchShapes } from '../../config/dispatch-options.js';
import { didYouMean } from '../../domain/did-you-mean.js';
import type { JobView } from '../../jobs/job-views.js';
import { EXIT } from '../../process/exit.js';
import { json, reader } from '../arguments.js';
import { type CommandResult, type CommandSpec, notFound, message } from '../command.js';
import type { Context, ReadOnlyScheduler } from '../context.js';
import { styled } from '../terminal/styled.js';
import { eventLines, watchJob } from './follow-jobs.js';
import { jobLines } from './job-views.js';

const shapes = dispatchShapes('UTC');

export const dispatch: CommandSpec = {
  name: 'dispatch',
  summary: 'Dispatch a job; with --wait, wait until it is finished',
  arguments: [{ name: '<taskType>', help: 'task type of the job' }],
  options: [
    { flags: '--payload <json>', help: 'JSON, @file, or @- for standard input (default: null)', read: json },
    { flags: '--delay <duration>', help: 'run it after this delay, such as 10m', read: reader(shapes.delay) },
    { flags: '--at <time>', help: "run it at this time: '2026-12-01 08:00', or with a time zone" },
    {
      flags: '--priority <n>',
      help: '0 to 1000, lower is more urgent (default: 100)',
      read: reader(shapes.priority),
    },
    { flags: '--queue <name>', help: 'queue of the job (default: default)' },
    { flags: '--key <text>', help: 'create no second job with the same task type and key' },
    { flags: '--timeout <duration>', help: 'time limit of one attempt', read: reader(shapes.timeout) },
    { flags: '--hold', help: 'hold it: it does not run until it is released' },
    {
      flags: '--wait',
      help: 'wait until it is finished, show its progress and log; exit 4 unless it completed',
    },
  ],
  examples: [
    `dispatch sendEmail --payload '{"to":"ada@example.org"}' --delay 10m`,
    'dispatch generateReport --payload @report.json --queue reports --wait',
  ],
  async run(context) {
    const { args } = context;
    const options: DispatchOptions = args.picked({
      ...{ delay: 'delay', at: 'at', priority: 'priority', queue: 'queue' },
      ...{ key: 'key', timeout: 'timeout', hold: 'hold' },
    });
    const { id, duplicate } = await context.change({
      action: 'dispatchJob',
      before: { filter: { taskType: args.word } },
      change: (scheduler) => scheduler.dispatch(args.word, args.value('payload') ?? null, options),
      after: (handle) => ({ target: handle.id }),
    });
    const sentence = duplicate ? `A job with this key already exists: ${id}` : `Dispatched ${id}`;
    const warning = await findMissingWorker(await context.scheduler(), args.word);
    if (warning !== undefined) context.err.lines(styled('yellow', warning));
    if (!args.flag('wait')) return message({ id, duplicate }, sentence);
    if (!context.isJson) context.err.lines(sentence);
    return wait(context, id);
  },
};

/** Only a warning: a worker that has the handler may start later. */
async function findMissingWorker(
  { operations }: ReadOnlyScheduler,
  taskType: string,
): Promise<string | undefined> {
  const live = (await operations.listWorkers()).filter(({ isLive }) => isLive);
  const known = live.flatMap(({ taskTypes }) => taskTypes);
  if (live.length === 0) return 'No worker is alive: the job waits for one.';
  if (known.includes(taskType)) return undefined;
  return `No live worker has a handler for '${taskType}'${didYouMean(taskType, known)}: the job waits for one that has.`;
}

async function wait(context: Context, id: string): Promise<CommandResult> {
  const events = watchJob(await context.scheduler(), id, context.clock, context.signal);
  for (let next = await events.next(); ; next = await events.next()) {
    if (next.done === true) return next.value === null ? notFound('job', id) : toResult(context, next.value);
    if (!context.isJson) context.err.lines(...eventLines(next.value));
  }
}

async function toResult(context: Context, job: JobView): Promise<CommandResult> {
  const { operations } = await context.scheduler();
  const details = (await operations.showJob(job.id)) ?? { job, executions: [] };
  // After Ctrl-C the job is not finished: it continues without this command.
  const isJobFinished = job.finishedAt !== null;
  return {
    data: details,
    lines: (view) => jobLines(details, view),
    exitCode: job.status === 'COMPLETED' ? EXIT.success : isJobFinished ? EXIT.jobFailed : EXIT.failure,
  };
}
