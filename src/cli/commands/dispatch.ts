import { type DispatchOptions, dispatchShapes } from '../../config/dispatch-options.js';
import { didYouMean } from '../../domain/did-you-mean.js';
import { EXIT } from '../../process/exit.js';
import { json, option } from '../arguments.js';
import { type CommandResult, type CommandSpec, notFound, message } from '../command.js';
import type { Context, ReadOnlyOperations } from '../context.js';
import { styled } from '../terminal/styled.js';
import { eventLines, watchJob } from './follow-jobs.js';
import { jobLines } from './job-views.js';

const shapes = dispatchShapes('UTC');

export const dispatch: CommandSpec = {
  name: 'dispatch',
  summary: 'Dispatch a job; with --wait, wait until it is finished',
  arguments: [{ name: '<taskType>', help: 'task type of the job' }],
  options: [
    option('--payload <json>', 'JSON, @file, or @- for standard input (default: null)', json),
    option('--delay <duration>', 'run it after this delay, such as 10m', shapes.delay),
    option('--at <time>', "run it at this time: '2026-12-01 08:00', or with a time zone"),
    option('--priority <n>', '0 to 1000, lower is more urgent (default: 100)', shapes.priority),
    option('--queue <name>', 'queue of the job (default: default)'),
    option('--key <text>', 'do not create a second job with the same task type and key'),
    option('--timeout <duration>', 'time limit of one attempt', shapes.timeout),
    option('--expires-in <duration>', 'do not start it later than this after it was due', shapes.expiresIn),
    option('--user <id>', 'user that the job is for'),
    option('--tag <tags>', 'labels to find it by, separated by commas', shapes.tags),
    option('--hold', 'hold it: it does not run until `jobs unhold`'),
    option('--wait', 'wait until it is finished, show its progress and log; exit 4 unless it completed'),
  ],
  examples: [
    `dispatch sendEmail --payload '{"to":"ada@example.org"}' --delay 10m`,
    'dispatch generateReport --payload @report.json --queue reports --wait',
  ],
  async run(context) {
    const { args } = context;
    const options: DispatchOptions = {
      ...args.pick('delay', 'at', 'priority', 'queue', 'key', 'timeout', 'expiresIn', 'hold'),
      ...args.pickAs({ userId: 'user', tags: 'tag' }),
    };
    const { id, duplicate } = await context.change({
      action: 'dispatchJob',
      before: { filter: { taskType: args.first } },
      change: (scheduler) => scheduler.dispatch(args.first, args.value('payload') ?? null, options),
      after: (handle) => ({ target: handle.id }),
    });
    const sentence = duplicate ? `A job with this key already exists: ${id}` : `Dispatched ${id}`;
    const warning = await findMissingWorker(await context.operations(), args.first);
    if (warning !== undefined) context.err.lines(styled('yellow', warning));
    if (!args.flag('wait')) return message({ id, duplicate }, sentence);
    if (!context.isJson) context.err.lines(sentence);
    return waitForJob(context, id);
  },
};

/** Only a warning: a worker that has the handler may start later. */
async function findMissingWorker(
  operations: ReadOnlyOperations,
  taskType: string,
): Promise<string | undefined> {
  const live = (await operations.listWorkers()).items.filter(({ isLive }) => isLive);
  const known = live.flatMap(({ taskTypes }) => taskTypes);
  if (live.length === 0) return 'There is no live worker: the job waits until one starts.';
  if (known.includes(taskType)) return undefined;
  return `No live worker has a handler for '${taskType}'${didYouMean(taskType, known)}: the job waits until one does.`;
}

async function waitForJob(context: Context, id: string): Promise<CommandResult> {
  const job = await watchJob(context, id, (event) => {
    if (!context.isJson) context.err.lines(...eventLines(event));
  });
  if (job === null) return notFound('job', id);
  const details = (await (await context.operations()).showJob(id)) ?? { job, executions: [] };
  // After Ctrl-C the job may be unfinished. It is not affected: only this command stops waiting.
  const failure = job.finishedAt === null ? EXIT.failure : EXIT.jobFailed;
  return {
    data: details,
    lines: (view) => jobLines(details, view),
    exitCode: job.status === 'COMPLETED' ? EXIT.success : failure,
  };
}
