import { ChronosError } from '../../domain/errors.js';
import { assertJobId } from '../../domain/identifiers.js';
import { bulkCounts } from '../../operations/audit.js';
import type { BulkAction, BulkAnswer, BulkOptions } from '../../operations/bulk.js';
import { EXIT } from '../../process/exit.js';
import type { Scheduler } from '../../scheduler.js';
import { type CommandResult, type CommandSpec, type OptionSpec, message } from '../command.js';
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
  changeOne: (scheduler: Scheduler, id: string, reason: string | undefined) => Promise<JobChange>;
}

/** The result for one job that was named by its id. */
interface JobChange {
  id: string;
  /** `changed`, `requested` (its worker was asked), or why it was not changed: its status, or `not found`. */
  result: string;
  isDone: boolean;
}

const RETRY: JobAction = {
  name: 'retry',
  summary: 'Run finished jobs again, by id or by filter (FAILED jobs, unless it has another status)',
  pastTense: 'scheduled again',
  takesReason: false,
  changeOne: async (scheduler, id) => {
    const result = await scheduler.retry(id);
    return toJobChange(id, result.retried, result.retried ? null : result.status);
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
      if (result.answer === 'requested') return { id, result: 'requested', isDone: true };
      const status = result.answer === 'alreadyFinished' ? result.status : null;
      return toJobChange(id, result.answer === 'cancelled', status);
    },
  },
  {
    name: 'hold',
    summary: 'Keep waiting jobs from running until they are released',
    pastTense: 'held',
    takesReason: true,
    changeOne: async (scheduler, id, reason) => {
      const result = await scheduler.hold(id, reason);
      return toJobChange(id, result.changed, result.changed ? null : result.status);
    },
  },
  {
    name: 'release',
    summary: 'Let held jobs run again',
    pastTense: 'released',
    takesReason: false,
    changeOne: async (scheduler, id) => {
      const result = await scheduler.unhold(id);
      return toJobChange(id, result.changed, result.changed ? null : result.status);
    },
  },
];

const ALL: OptionSpec = { flags: '--all', help: 'all jobs, without a filter' };
const REASON: OptionSpec = { flags: '--reason <text>', help: 'why; stored with the jobs' };

export const changeCommands: readonly CommandSpec[] = JOB_ACTIONS.map((action) => ({
  name: `jobs ${action.name}`,
  summary: action.summary,
  arguments: [{ name: '[ids...]', help: 'ids of jobs; or use a filter' }],
  options: [STATUS_FILTER, ...JOB_FILTER, ALL, ...(action.takesReason ? [REASON] : []), YES],
  examples: [
    `jobs ${action.name} 66b0c1d2e3f4a5b6c7d8e9f0`,
    `jobs ${action.name} --queue mail --type sendEmail --yes`,
  ],
  run: async (context) => {
    const hasFilter = Object.keys(jobFilter(context.args)).length > 0 || context.args.flag('all');
    const hasIds = context.args.words.length > 0;
    if (hasFilter === hasIds) {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `jobs ${action.name} takes either ids or a filter, got ${hasFilter ? 'both' : 'neither'} (--all for all jobs)`,
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
  for (const id of args.words) assertJobId(id);
  const changes: JobChange[] = [];
  for (const id of args.words) {
    const change = await context.change({
      action: `${action.name}Job`,
      before: { target: id },
      change: (scheduler) => action.changeOne(scheduler, id, args.text('reason')),
      after: ({ isDone }) => (isDone ? {} : 'refused'),
    });
    changes.push(change);
  }
  return {
    data: {
      action: action.name,
      changes: changes.map(({ id, result, isDone }) => ({ id, result, changed: isDone })),
    },
    lines: ({ width }) =>
      table<JobChange>(
        [
          { title: 'id', cell: ({ id }) => id, keep: true },
          { title: 'result', cell: ({ result, isDone }) => styled(isDone ? 'green' : 'yellow', result) },
        ],
        changes,
        width,
      ),
    exitCode: changes.every(({ isDone }) => isDone) ? EXIT.success : EXIT.failure,
  };
}

function toJobChange(id: string, isDone: boolean, status: string | null): JobChange {
  return { id, isDone, result: isDone ? 'changed' : (status ?? 'not found') };
}

async function changeMatching(
  context: Context,
  { name, pastTense }: JobAction,
  auditAction: string,
): Promise<CommandResult> {
  const { operations } = await context.scheduler();
  const filter = jobFilter(context.args);
  const count = await operations.countMatching(filter, name);
  if (count.count === 0) return message({ ...NO_CHANGE, action: name }, `No job to ${name}.`);
  if (!(await context.confirm(`This will ${name} ${counted(count, 'job')}.`)))
    return message({ ...NO_CHANGE, action: name, isAborted: true }, 'No change made.', EXIT.failure);
  const bar = context.progress(name);
  const reason = context.args.text('reason');
  const options: BulkOptions = {
    ...(reason !== undefined && { reason }),
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
