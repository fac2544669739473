import { assertJobId } from '../../domain/identifiers.js';
import type { JobStatus } from '../../domain/job/job.js';
import { bulkCounts } from '../../operations/audit.js';
import type { BulkAction, BulkAnswer, BulkOptions } from '../../operations/bulk.js';
import { EXIT } from '../../process/exit.js';
import type { Scheduler } from '../../scheduler.js';
import { invalidArgument, option } from '../arguments.js';
import { type CommandResult, type CommandSpec, message } from '../command.js';
import type { Context } from '../context.js';
import { counted, number } from '../terminal/format.js';
import { styled } from '../terminal/styled.js';
import { table } from '../terminal/table.js';
import { JOB_FILTER, jobFilter, STATUS_FILTER, YES } from './filters.js';

interface JobAction {
  name: BulkAction;
  summary: string;
  pastTense: string;
  takesReason: boolean;
  /** Resolves to the status of a job that cannot be changed; null if there is no such job. */
  changeOne: (
    scheduler: Scheduler,
    id: string,
    reason: string | undefined,
  ) => Promise<'changed' | 'requested' | JobStatus | null>;
}

interface JobChange {
  id: string;
  result: string;
  changed: boolean;
}

const RETRY: JobAction = {
  name: 'retry',
  summary: 'Run finished jobs again, by id or by filter (FAILED ones, unless --status is set)',
  pastTense: 'scheduled again',
  takesReason: false,
  changeOne: async (scheduler, id) => {
    const result = await scheduler.retry(id);
    return result.retried ? 'changed' : result.status;
  },
};

const JOB_ACTIONS: readonly JobAction[] = [
  RETRY,
  {
    name: 'cancel',
    summary: 'Cancel waiting jobs, and ask the workers of running ones to cancel them',
    pastTense: 'cancelled',
    takesReason: true,
    changeOne: async (scheduler, id, reason) => {
      const result = await scheduler.cancel(id, reason);
      if (result.answer === 'alreadyFinished') return result.status;
      if (result.answer === 'notFound') return null;
      return result.answer === 'cancelled' ? 'changed' : 'requested';
    },
  },
  {
    name: 'hold',
    summary: 'Keep waiting jobs from running until they are released',
    pastTense: 'held',
    takesReason: true,
    changeOne: async (scheduler, id, reason) => {
      const result = await scheduler.hold(id, reason);
      return result.changed ? 'changed' : result.status;
    },
  },
  {
    name: 'release',
    summary: 'Let held jobs run again',
    pastTense: 'released',
    takesReason: false,
    changeOne: async (scheduler, id) => {
      const result = await scheduler.unhold(id);
      return result.changed ? 'changed' : result.status;
    },
  },
];

const ALL = option('--all', 'all jobs, without a filter');
const REASON = option('--reason <text>', 'why; stored with the jobs');

export const changeCommands: readonly CommandSpec[] = JOB_ACTIONS.map((action) => ({
  name: `jobs ${action.name}`,
  summary: action.summary,
  arguments: [{ name: '[ids...]', help: 'ids of jobs, unless a filter is specified' }],
  options: [STATUS_FILTER, ...JOB_FILTER, ALL, ...(action.takesReason ? [REASON] : []), YES],
  examples: [
    `jobs ${action.name} 66b0c1d2e3f4a5b6c7d8e9f0`,
    `jobs ${action.name} --queue mail --type sendEmail --yes`,
  ],
  run: async (context) => {
    const hasFilter = Object.keys(jobFilter(context.args)).length > 0 || context.args.flag('all');
    const hasIds = context.args.positionals.length > 0;
    if (hasFilter === hasIds) {
      const received = hasFilter ? 'both' : 'neither';
      throw invalidArgument(
        `jobs ${action.name} needs either ids or a filter, got ${received} (--all for all jobs)`,
      );
    }
    return hasFilter ? changeMatching(context, action, `${action.name}Jobs`) : changeByIds(context, action);
  },
}));

export const deadRetry: CommandSpec = {
  name: 'dead retry',
  summary: 'Run FAILED jobs again, all of them or by filter',
  options: [...JOB_FILTER, YES],
  examples: ['dead retry --type sendEmail --yes'],
  run: (context) => changeMatching(context, RETRY, 'retryDead'),
};

async function changeByIds(context: Context, action: JobAction): Promise<CommandResult> {
  const { args } = context;
  // Check all ids before the first change.
  for (const id of args.positionals) assertJobId(id);
  const changes: JobChange[] = [];
  for (const id of args.positionals) {
    const result = await context.change({
      action: `${action.name}Job`,
      before: { target: id },
      change: (scheduler) => action.changeOne(scheduler, id, args.text('reason')),
      after: (answer) => (isChanged(answer) ? {} : 'refused'),
    });
    changes.push({ id, result: result ?? 'not found', changed: isChanged(result) });
  }
  return {
    data: { action: action.name, changes },
    lines: ({ width }) =>
      table<JobChange>(
        [
          { title: 'id', cell: ({ id }) => id, keep: true },
          { title: 'result', cell: ({ result, changed }) => styled(changed ? 'green' : 'yellow', result) },
        ],
        changes,
        width,
      ),
    exitCode: changes.every(({ changed }) => changed) ? EXIT.success : EXIT.failure,
  };
}

function isChanged(result: string | null): boolean {
  return result === 'changed' || result === 'requested';
}

async function changeMatching(
  context: Context,
  { name, pastTense }: JobAction,
  auditAction: string,
): Promise<CommandResult> {
  const operations = await context.operations();
  const filter = jobFilter(context.args);
  const count = await operations.countMatching(filter, name);
  if (count.count === 0) return message({ ...NO_CHANGE, action: name }, `No job to ${name}.`);
  if (!(await context.confirm(`This will ${name} ${counted(count, 'job')}.`)))
    return message({ ...NO_CHANGE, action: name, isAborted: true }, 'No change made.', EXIT.failure);
  const bar = context.progress(name);
  const options: BulkOptions = {
    ...context.args.pick('reason'),
    signal: context.signal,
    onProgress: ({ matched }) => bar.show(matched, count.count),
  };
  const result = await context.change({
    action: auditAction,
    before: { filter: { ...filter, ...(context.args.flag('all') && { all: 'true' }) } },
    change: (scheduler) => scheduler.operations[`${name}Jobs`](filter, options).finally(() => bar.end()),
    after: bulkCounts,
  });
  const isComplete = !result.isAborted && Object.keys(result.refused).length === 0;
  return message(
    { action: name, ...result },
    describe(result, pastTense),
    isComplete ? EXIT.success : EXIT.failure,
  );
}

const NO_CHANGE: BulkAnswer = { matched: 0, changed: 0, requested: 0, refused: {}, isAborted: false };

function describe(result: BulkAnswer, pastTense: string): string {
  const { changed, matched, requested, refused, isAborted } = result;
  const unchanged = Object.entries(refused).map(([status, count]) => `${number(count)} ${status}`);
  return [
    `${number(changed)} of ${number(matched)} jobs ${pastTense}`,
    requested === 0
      ? ''
      : ` (${number(requested)} of them are running: their workers were asked to cancel them)`,
    unchanged.length === 0 ? '' : `; not changed: ${unchanged.join(', ')}`,
    isAborted ? '; interrupted, run it again for the rest' : '',
    '.',
  ].join('');
}
