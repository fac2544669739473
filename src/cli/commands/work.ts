import { batchShape, daemonShapes, type PassOptions } from '../../config/method-options.js';
import { optionShapes } from '../../config/options.js';
import { EXIT } from '../../process/exit.js';
import type { PassEntry } from '../../schedules/pass/pass-entry.js';
import { reader } from '../arguments.js';
import type { CommandSpec, OptionSpec, View } from '../command.js';
import type { Context } from '../context.js';
import { instant, NONE, plural } from '../terminal/format.js';
import { type Line, type Style, styled } from '../terminal/styled.js';
import { table } from '../terminal/table.js';
import { HANDLERS } from './definitions.js';

export const WORK_OPTIONS: readonly OptionSpec[] = [
  HANDLERS,
  {
    flags: '--queues <names>',
    help: 'queues to serve: mail,default (default: QUEUES)',
    read: reader(optionShapes.queues),
  },
  {
    flags: '--concurrency <n>',
    help: 'jobs at a time (default: CONCURRENCY, else 5)',
    read: reader(optionShapes.concurrency),
  },
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
      {
        flags: '--interval <duration>',
        help: 'time between two passes (default: TICK_INTERVAL, else 1m)',
        read: reader(daemonShapes.interval),
      },
      {
        flags: '--max-overruns <n>',
        help: 'exit 5 after this many overruns in a row (default: MAX_OVERRUNS, else never)',
        read: reader(daemonShapes.maxOverruns),
      },
    ],
    examples: ['daemon --handlers ./my-handlers.js --interval 30s'],
    run: (context) => runWorker(context, 'daemon'),
  },
  {
    name: 'run',
    summary: 'Process what is due and exit, for system cron; exit 4 if a job failed',
    options: [
      ...WORK_OPTIONS,
      { flags: '--at <time>', help: "run what is due in the minute up to this time: '2026-12-01 08:30'" },
      { flags: '--dry-run', help: 'only show what would run; write nothing' },
      {
        flags: '--batch <n>',
        help: 'how many due jobs to run in addition (default: 32)',
        read: reader(batchShape),
      },
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
  const ticks = context.args.picked({ interval: 'interval', maxOverruns: 'maxOverruns' });
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
  const { openWorker, pass } = await import('../../process/worker-process.js');
  const log = createLogger(settings, 'stderr');
  const scheduler = await openWorker(settings, log);
  const options: PassOptions = args.picked({ at: 'at', dryRun: 'dryRun', batch: 'batch' });
  const report = await pass(scheduler, log, options);
  const { entries, executed, failed, at } = report;
  return {
    data: report,
    lines: (view: View): Line[] => [
      ...entryTable(entries, view),
      `${args.flag('dryRun') ? 'Would run the above' : 'Pass finished'} at ${instant(at)}: ${plural(executed, 'due job')} executed, ${plural(failed, 'attempt')} failed.`,
    ],
    exitCode: failed === 0 ? EXIT.success : EXIT.jobFailed,
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
