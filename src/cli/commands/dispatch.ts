import type { DispatchOptions } from '../../config/dispatch-options.js';
import type { JobView } from '../../dispatch/job-view.js';
import { hint } from '../../domain/nearest.js';
import { EXIT } from '../../process/exit.js';
import { notFound, said, type Answer, type CommandSpec } from '../command.js';
import type { Context } from '../context.js';
import { duration, json, wholeNumber } from '../readers.js';
import type { Reading } from '../reading.js';
import { styled } from '../styled.js';
import { jobLines } from './jobs-view.js';
import { eventLines, watchJob } from './watch-job.js';

export const dispatch: CommandSpec = {
  name: 'dispatch',
  summary: 'Store a job, and wait for it if asked to',
  arguments: [{ name: '<taskType>', help: 'what to run' }],
  options: [
    { flags: '--payload <json>', help: 'JSON, @file, or @- for standard input (default: null)', read: json },
    { flags: '--delay <duration>', help: 'not before this long from now, such as 10m', read: duration },
    { flags: '--at <time>', help: "not before this: '2026-12-01 08:00' or with its zone" },
    {
      flags: '--priority <n>',
      help: '0 to 1000, lower is more urgent (default: 100)',
      read: wholeNumber(0, 1000),
    },
    { flags: '--queue <name>', help: '(default: default)' },
    { flags: '--key <text>', help: 'the same key twice is the same job' },
    { flags: '--timeout <duration>', help: 'of one attempt', read: duration },
    { flags: '--hold', help: 'store it held, until it is released' },
    { flags: '--wait', help: 'until it is finished, with its progress and log; exit 4 unless it completed' },
  ],
  examples: [
    `dispatch sendEmail --payload '{"to":"ada@example.org"}' --delay 10m`,
    'dispatch generateReport --payload @report.json --queue reports --wait',
  ],
  async run(context) {
    const { given } = context;
    const options: DispatchOptions = given.picked({
      ...{ delay: 'delay', at: 'at', priority: 'priority', queue: 'queue' },
      ...{ key: 'key', timeout: 'timeout', hold: 'hold' },
    });
    const { id, duplicate } = await context.change({
      action: 'dispatchJob',
      about: { filter: { taskType: given.word } },
      make: (scheduler) => scheduler.dispatch(given.word, given.value('payload') ?? null, options),
      came: (handle) => ({ target: handle.id }),
    });
    const sentence = duplicate ? `There was a job of that key: ${id}` : `Dispatched ${id}`;
    const doubt = await doubtOf(await context.scheduler(), given.word);
    if (doubt !== undefined) context.err.lines(styled('yellow', doubt));
    if (!given.flag('wait')) return said({ id, duplicate }, sentence);
    if (!context.isJson) context.err.lines(sentence);
    return wait(context, id);
  },
};

/** Said, not refused: the worker that has the handler may come later. */
async function doubtOf({ operations }: Reading, taskType: string): Promise<string | undefined> {
  const live = (await operations.listWorkers()).filter(({ isLive }) => isLive);
  const known = live.flatMap(({ taskTypes }) => taskTypes);
  if (live.length === 0) return 'No worker is alive: it waits for one.';
  if (known.includes(taskType)) return undefined;
  return `No live worker has a handler for '${taskType}'${hint(taskType, known)}: it waits for one that has.`;
}

async function wait(context: Context, id: string): Promise<Answer> {
  const events = watchJob(await context.scheduler(), id, context.clock, context.signal);
  for (let next = await events.next(); ; next = await events.next()) {
    if (next.done === true) return next.value === null ? notFound('job', id) : ended(context, next.value);
    if (!context.isJson) context.err.lines(...eventLines(next.value));
  }
}

async function ended(context: Context, job: JobView): Promise<Answer> {
  const { operations } = await context.scheduler();
  const details = (await operations.showJob(job.id)) ?? { job, executions: [] };
  // Ctrl-C: the job goes on without anybody who waits.
  const isOver = job.finishedAt !== null;
  return {
    data: details,
    lines: (view) => jobLines(details, view),
    exitCode: job.status === 'COMPLETED' ? EXIT.fine : isOver ? EXIT.jobFailed : EXIT.wrong,
  };
}
