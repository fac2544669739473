import { dispatchShapes } from '../../config/dispatch-options.js';
import type { JobFilterOptions } from '../../config/query-options.js';
import { assertJobId } from '../../domain/identifiers.js';
import { DELETE_RULE } from '../../domain/job/job.js';
import { assertNever } from '../../domain/language.js';
import { type AuditDetails, bulkCounts } from '../../operations/audit.js';
import type { BulkAction, BulkChange, BulkOptions, CountedAction } from '../../operations/bulk.js';
import { EXIT } from '../../process/exit.js';
import type { Scheduler } from '../../scheduler.js';
import type { JobChange } from '../../store/jobs/change.js';
import { invalidArgument, option } from '../arguments.js';
import { type CommandResult, type CommandSpec, message } from '../command.js';
import type { Context } from '../context.js';
import { counted, number, plural } from '../terminal/format.js';
import { styled } from '../terminal/styled.js';
import { table } from '../terminal/table.js';
import { JOB_FILTER, jobFilter, STATE_FILTER, YES } from './filters.js';

interface JobAction {
  name: BulkAction;
  summary: string;
  pastTense: string;
  takesReason: boolean;
}

const RETRY: JobAction = {
  name: 'retry',
  summary: 'Run finished jobs again, by id or by filter (failed ones, unless --state is set)',
  pastTense: 'scheduled again',
  takesReason: false,
};

const JOB_ACTIONS: readonly JobAction[] = [
  RETRY,
  {
    name: 'cancel',
    summary: 'Cancel waiting jobs, and ask the workers of running ones to cancel them',
    pastTense: 'cancelled',
    takesReason: true,
  },
  {
    name: 'hold',
    summary: 'Keep waiting jobs from running until `jobs unhold`',
    pastTense: 'held',
    takesReason: true,
  },
  {
    name: 'unhold',
    summary: 'Let held jobs run again',
    pastTense: 'unheld',
    takesReason: false,
  },
  {
    name: 'delete',
    summary: 'Delete finished jobs, except jobs of schedules that finished within the last hour',
    pastTense: 'deleted',
    takesReason: false,
  },
];

const ALL = option('--all', 'all jobs, without a filter');
const REASON = option('--reason <text>', 'why; stored with the jobs');

export const changeCommands: readonly CommandSpec[] = JOB_ACTIONS.map((action) => ({
  name: `jobs ${action.name}`,
  summary: action.summary,
  arguments: [{ name: '[ids...]', help: 'ids of jobs, unless a filter is specified' }],
  options: [STATE_FILTER, ...JOB_FILTER, ALL, ...(action.takesReason ? [REASON] : []), YES],
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
    if (hasFilter) return changeMatching(context, action, `${action.name}Jobs`);
    // Every other action can be undone by another one.
    const question = `This will delete ${plural(context.args.positionals.length, 'job')}.`;
    if (action.name === 'delete' && !(await context.confirm(question)))
      return message({ action: action.name, changes: [], isAborted: true }, 'No change made.', EXIT.failure);
    return changeByIds(context, action.name, (scheduler, id) =>
      scheduler[action.name](id, context.args.text('reason')),
    );
  },
}));

const shapes = dispatchShapes('UTC');

export const reschedule: CommandSpec = {
  name: 'jobs reschedule',
  summary: 'Change when jobs are due, unless a worker has claimed them',
  arguments: [{ name: '<ids...>', help: 'ids of jobs' }],
  options: [
    option('--delay <duration>', 'due after this delay, such as 10m', shapes.delay),
    option('--at <time>', "due at this time: '2026-12-01 08:00', or with a time zone"),
  ],
  examples: ['jobs reschedule 66b0c1d2e3f4a5b6c7d8e9f0 --delay 10m'],
  run: (context) =>
    changeByIds(context, 'reschedule', (scheduler, id) =>
      scheduler.reschedule(id, context.args.pick('delay', 'at')),
    ),
};

export const deadRetry: CommandSpec = {
  name: 'dead retry',
  summary: 'Run failed jobs again, all of them or by filter',
  options: [...JOB_FILTER, YES],
  examples: ['dead retry --type sendEmail --yes'],
  run: (context) => changeMatching(context, RETRY, 'retryDead'),
};

async function changeByIds(
  context: Context,
  action: BulkAction | 'reschedule',
  changeOne: (scheduler: Scheduler, id: string) => Promise<JobChange>,
): Promise<CommandResult> {
  const { args } = context;
  // Check all ids before the first change.
  for (const id of args.positionals) assertJobId(id);
  const changes: (JobChange & { id: string })[] = [];
  for (const id of args.positionals) {
    const change = await context.change({
      action: `${action}Job`,
      before: { target: id },
      change: (scheduler) => changeOne(scheduler, id),
      after: (made) => (isChanged(made) ? {} : 'refused'),
    });
    changes.push({ id, ...change });
  }
  return {
    data: { action, changes },
    lines: ({ width }) =>
      table<JobChange & { id: string }>(
        [
          { title: 'id', cell: ({ id }) => id, keep: true },
          {
            title: 'result',
            cell: (change) => styled(isChanged(change) ? 'green' : 'yellow', describeChange(change, action)),
          },
        ],
        changes,
        width,
      ),
    exitCode: changes.every(isChanged) ? EXIT.success : EXIT.failure,
  };
}

function isChanged({ result }: JobChange): boolean {
  return result === 'changed' || result === 'requested';
}

function describeChange({ result, state }: JobChange, action: BulkAction | 'reschedule'): string {
  switch (result) {
    case 'changed':
      return state === null ? 'deleted' : `changed, now ${state}`;
    case 'requested':
      return 'running; its worker was asked to cancel it';
    case 'refused':
      return `not changed: it is ${state ?? 'unknown'}${action === 'delete' ? ` (${DELETE_RULE})` : ''}`;
    case 'notFound':
      return 'not found';
    default:
      return assertNever(result);
  }
}

async function changeMatching(
  context: Context,
  { name, pastTense }: JobAction,
  auditAction: string,
): Promise<CommandResult> {
  const filter = jobFilter(context.args);
  return changeCounted(context, {
    ...{ action: name, verb: name, pastTense, auditAction, filter, counted: name },
    details: { filter: { ...filter, ...(context.args.flag('all') && { all: 'true' }) } },
    change: ({ operations }, options) => operations[`${name}Jobs`](filter, options),
  });
}

export const emptyQueue: CommandSpec = {
  name: 'queues empty',
  summary:
    'Delete the jobs of a queue that no worker has claimed; those of schedules are cancelled, so that they are not created again',
  arguments: [{ name: '<queue>', help: 'name of the queue' }],
  options: [option('--reason <text>', 'why; stored with the jobs that are cancelled'), YES],
  examples: ['queues empty mail', 'queues empty mail --yes'],
  run: (context) => {
    const queue = context.args.first;
    return changeCounted(context, {
      ...{ action: 'empty', verb: 'remove', pastTense: 'removed', auditAction: 'emptyQueue' },
      ...{ filter: { queue }, counted: 'empty', details: { target: queue } },
      change: ({ operations }, options) => operations.emptyQueue(queue, options),
    });
  },
};

interface CountedChange {
  /** In the result of `--json`. */
  action: string;
  verb: string;
  pastTense: string;
  auditAction: string;
  filter: JobFilterOptions;
  counted: CountedAction;
  details: AuditDetails;
  change: (scheduler: Scheduler, options: BulkOptions) => Promise<BulkChange & { cancelled?: number }>;
}

/** Counts the jobs, asks, and changes them. */
async function changeCounted(context: Context, request: CountedChange): Promise<CommandResult> {
  const { action, verb, pastTense, auditAction, details, change } = request;
  const operations = await context.operations();
  const count = await operations.countMatching(request.filter, request.counted);
  if (count.count === 0) return message({ ...NO_CHANGE, action }, `No job to ${verb}.`);
  if (!(await context.confirm(`This will ${verb} ${counted(count, 'job')}.`)))
    return message({ ...NO_CHANGE, action, isAborted: true }, 'No change made.', EXIT.failure);
  const bar = context.progress(verb);
  const options: BulkOptions = {
    ...context.args.pick('reason'),
    signal: context.signal,
    onProgress: ({ matched }) => bar.show(matched, count.count),
  };
  const result = await context.change({
    action: auditAction,
    before: details,
    change: (scheduler) => change(scheduler, options).finally(() => bar.end()),
    after: bulkCounts,
  });
  const isComplete = !result.isAborted && Object.keys(result.refused).length === 0;
  return message(
    { action, ...result },
    describe(result, pastTense),
    isComplete ? EXIT.success : EXIT.failure,
  );
}

const NO_CHANGE: BulkChange = { matched: 0, changed: 0, requested: 0, refused: {}, isAborted: false };

function describe(result: BulkChange & { cancelled?: number }, pastTense: string): string {
  const { changed, matched, requested, refused, isAborted, cancelled = 0 } = result;
  const unchanged = Object.entries(refused).map(([state, count]) => `${number(count)} ${state}`);
  return [
    `${number(changed)} of ${number(matched)} jobs ${pastTense}`,
    requested === 0
      ? ''
      : ` (${number(requested)} of them are running: their workers were asked to cancel them)`,
    cancelled === 0 ? '' : ` (${number(cancelled)} of them belong to schedules and were cancelled)`,
    unchanged.length === 0 ? '' : `; not changed: ${unchanged.join(', ')}`,
    isAborted ? '; interrupted, run it again for the rest' : '',
    '.',
  ].join('');
}
