import type { PassOptions } from '../../config/call-options.js';
import { EXIT } from '../../process/exit.js';
import type { PassEntry } from '../../schedules/pass-entry.js';
import type { CommandSpec, OptionSpec, View } from '../command.js';
import type { Context } from '../context.js';
import { duration, list, wholeNumber } from '../readers.js';
import { styled, type Line, type Style } from '../styled.js';
import { table } from '../table.js';
import { instant, NONE, plural } from '../times.js';
import { HANDLERS } from './definitions.js';

export const WORK_OPTIONS: readonly OptionSpec[] = [
  HANDLERS,
  { flags: '--queues <names>', help: 'queues to serve: mail,default (default: QUEUES)', read: list },
  {
    flags: '--concurrency <n>',
    help: 'jobs at a time (default: CONCURRENCY, else 5)',
    read: wholeNumber(1, 10_000),
  },
];

const STYLE_OF: Record<PassEntry['result'], Style> = {
  run: 'green',
  enqueued: 'blue',
  skipped: 'dim',
  failed: 'red',
};

export const workCommands: readonly CommandSpec[] = [
  {
    name: 'work',
    summary: 'Work until stopped, like `node dist/worker.js`; --json logs in JSON',
    options: WORK_OPTIONS,
    examples: ['work --handlers ./my-handlers.js --queues mail,default --concurrency 10'],
    run: (context) => asWorker(context, 'work'),
  },
  {
    name: 'daemon',
    summary: 'Make one pass at every tick until stopped; --json logs in JSON',
    options: [
      ...WORK_OPTIONS,
      {
        flags: '--interval <duration>',
        help: 'between two passes (default: TICK_INTERVAL, else 1m)',
        read: duration,
      },
      {
        flags: '--max-overruns <n>',
        help: 'end with exit 5 after so many in a row (default: MAX_OVERRUNS, else never)',
        read: wholeNumber(1, 1_000_000),
      },
    ],
    examples: ['daemon --handlers ./my-handlers.js --interval 30s'],
    run: (context) => asWorker(context, 'daemon'),
  },
  {
    name: 'run',
    summary: 'Make one pass, for system cron: run or enqueue what is due; exit 4 when a job failed',
    options: [
      ...WORK_OPTIONS,
      { flags: '--at <time>', help: "what is due in the minute up to this: '2026-12-01 08:30'" },
      { flags: '--dry-run', help: 'only tell what would run; nothing is written' },
      {
        flags: '--batch <n>',
        help: 'due jobs to execute besides (default: 32)',
        read: wholeNumber(0, 1_000_000),
      },
    ],
    examples: [
      'run --handlers ./my-handlers.js',
      "run --at '2026-12-01 08:30' --dry-run --handlers ./my-handlers.js",
    ],
    run: onePass,
  },
];

async function asWorker(context: Context, mode: 'work' | 'daemon'): Promise<number> {
  const { daemon, ...rest } = context.settings();
  const ticks = context.given.picked({ interval: 'interval', maxOverruns: 'maxOverruns' });
  const settings = { ...rest, daemon: { ...daemon, ...ticks } };
  const { createLogger } = await import('../../process/logger.js');
  const worker = await import('../../process/worker-process.js');
  const log = createLogger(settings);
  return worker[mode](await worker.openWorker(settings, log), settings, log);
}

/** Its answer goes to standard output, and its log beside it. */
async function onePass(context: Context) {
  const { given } = context;
  const settings = context.settings();
  const { createLogger } = await import('../../process/logger.js');
  const { openWorker, pass } = await import('../../process/worker-process.js');
  const log = createLogger(settings, 'stderr');
  const scheduler = await openWorker(settings, log);
  const options: PassOptions = given.picked({ at: 'at', dryRun: 'dryRun', batch: 'batch' });
  const report = await pass(scheduler, log, options);
  const { entries, executed, failed, at } = report;
  return {
    data: report,
    lines: (view: View): Line[] => [
      ...entryTable(entries, view),
      `${given.flag('dryRun') ? 'Would run as above' : 'Pass over'} at ${instant(at)}: ${plural(executed, 'due job')} executed, ${plural(failed, 'attempt')} failed.`,
    ],
    exitCode: failed === 0 ? EXIT.fine : EXIT.jobFailed,
  };
}

function entryTable(entries: readonly PassEntry[], { width }: View): Line[] {
  if (entries.length === 0) return [];
  return table<PassEntry>(
    [
      { title: 'definition', cell: ({ name }) => name },
      { title: 'result', cell: ({ result }) => styled(STYLE_OF[result], result) },
      { title: 'for', cell: ({ scheduledFor }) => (scheduledFor === null ? NONE : instant(scheduledFor)) },
      { title: 'job', cell: ({ jobId }) => jobId ?? NONE },
      { title: 'reason', cell: ({ reason }) => reason ?? '' },
    ],
    entries,
    width,
  );
}
