import { batchShape, daemonShapes, type PassOptions } from '../../config/method-options.js';
import { optionShapes } from '../../config/options.js';
import type { PassEntry } from '../../schedules/pass/pass-entry.js';
import { option } from '../arguments.js';
import type { CommandSpec, View } from '../command.js';
import type { Context } from '../context.js';
import { instant, NONE, plural } from '../terminal/format.js';
import { type Line, type Style, styled } from '../terminal/styled.js';
import { table } from '../terminal/table.js';
import { HANDLERS } from './definitions.js';

export const WORK_OPTIONS = [
  HANDLERS,
  option('--queues <names>', 'queues to serve: mail,default (default: QUEUES)', optionShapes.queues),
  option('--concurrency <n>', 'jobs at a time (default: CONCURRENCY, else 5)', optionShapes.concurrency),
];

const RESULT_STYLES: Record<PassEntry['result'], Style> = {
  run: 'green',
  enqueued: 'blue',
  skipped: 'dim',
  failed: 'red',
};

export const workCommands: readonly CommandSpec[] = [
  {
    name: 'work',
    summary: 'Run a worker until it is stopped, like `node dist/worker.js`; --json logs in JSON',
    options: WORK_OPTIONS,
    examples: ['work --handlers ./my-handlers.js --queues mail,default --concurrency 10'],
    run: (context) => runWorker(context, 'work'),
  },
  {
    name: 'daemon',
    summary: 'Process what is due every minute until stopped; --json logs in JSON',
    options: [
      ...WORK_OPTIONS,
      option(
        '--interval <duration>',
        'time between two passes (default: TICK_INTERVAL, else 1m)',
        daemonShapes.interval,
      ),
      option(
        '--max-overruns <n>',
        'exit 5 after this many overruns in a row (default: MAX_OVERRUNS, else never)',
        daemonShapes.maxOverruns,
      ),
    ],
    examples: ['daemon --handlers ./my-handlers.js --interval 30s'],
    run: (context) => runWorker(context, 'daemon'),
  },
  {
    name: 'run',
    summary: 'Process what is due and exit, for system cron; exit 4 if a job failed',
    options: [
      ...WORK_OPTIONS,
      option('--at <time>', "run what is due in the minute up to this time: '2026-12-01 08:30'"),
      option('--dry-run', 'only show what would run; write nothing'),
      option('--batch <n>', 'how many other due jobs to run (default: 32)', batchShape),
    ],
    examples: [
      'run --handlers ./my-handlers.js',
      "run --at '2026-12-01 08:30' --dry-run --handlers ./my-handlers.js",
    ],
    run: runPass,
  },
];

async function runWorker(context: Context, mode: 'work' | 'daemon'): Promise<number> {
  const { daemon, ...rest } = context.settings();
  const ticks = context.args.pick('interval', 'maxOverruns');
  const settings = { ...rest, daemon: { ...daemon, ...ticks } };
  const { createLogger } = await import('../../process/logger.js');
  const worker = await import('../../process/worker-process.js');
  const log = createLogger(settings);
  return worker[mode](await worker.openWorker(settings, log), settings, log);
}

/** The result goes to standard output, the log to standard error. */
async function runPass(context: Context) {
  const { args } = context;
  const settings = context.settings();
  const { createLogger } = await import('../../process/logger.js');
  const { openWorker, pass, passExitCode } = await import('../../process/worker-process.js');
  const log = createLogger(settings, 'stderr');
  const scheduler = await openWorker(settings, log);
  const options: PassOptions = args.pick('at', 'dryRun', 'batch');
  const report = await pass(scheduler, log, options);
  const { entries, executed, failed, at } = report;
  return {
    data: report,
    lines: (view: View): Line[] => [
      ...entryTable(entries, view),
      `${args.flag('dryRun') ? 'Would run the above' : 'Pass finished'} at ${instant(at)}: ${plural(executed, 'due job')} executed, ${plural(failed, 'attempt')} failed.`,
    ],
    exitCode: passExitCode(report),
  };
}

function entryTable(entries: readonly PassEntry[], { width }: View): Line[] {
  if (entries.length === 0) return [];
  return table<PassEntry>(
    [
      { title: 'definition', cell: ({ name }) => name },
      { title: 'result', cell: ({ result }) => styled(RESULT_STYLES[result], result) },
      { title: 'for', cell: ({ scheduledFor }) => (scheduledFor === null ? NONE : instant(scheduledFor)) },
      { title: 'job', cell: ({ jobId }) => jobId ?? NONE },
      { title: 'reason', cell: ({ reason }) => reason ?? '' },
    ],
    entries,
    width,
  );
}
