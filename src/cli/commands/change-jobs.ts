import { countsOf } from '../../operations/audited.js';
import type { BulkAnswer, BulkOptions } from '../../operations/bulk.js';
import { EXIT } from '../../process/exit.js';
import { ChronosError } from '../../domain/errors.js';
import { checkJobId } from '../../domain/names.js';
import { said, type Answer, type CommandSpec, type OptionSpec } from '../command.js';
import type { Context } from '../context.js';
import { styled } from '../styled.js';
import { table } from '../table.js';
import { counted, number } from '../times.js';
import { RETRY, VERBS, type Change, type Verb } from './job-verbs.js';
import { JOB_FILTER, jobFilter, STATUS_FILTER, YES } from './job-filter.js';

const ALL: OptionSpec = { flags: '--all', help: 'all jobs there are, without a filter' };
const REASON: OptionSpec = { flags: '--reason <text>', help: 'why; kept with the jobs' };

export const changeCommands: readonly CommandSpec[] = VERBS.map((verb) => ({
  name: `jobs ${verb.action}`,
  summary: verb.summary,
  arguments: [{ name: '[ids...]', help: 'of jobs; or a filter instead' }],
  options: [STATUS_FILTER, ...JOB_FILTER, ALL, ...(verb.takesReason ? [REASON] : []), YES],
  examples: [
    `jobs ${verb.action} 66b0c1d2e3f4a5b6c7d8e9f0`,
    `jobs ${verb.action} --queue mail --type sendEmail --yes`,
  ],
  run: async (context) => {
    const filter = jobFilter(context.given);
    const isFiltered = Object.keys(filter).length > 0 || context.given.flag('all');
    const { words } = context.given;
    if (isFiltered === words.length > 0) {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `jobs ${verb.action} takes either ids or a filter, got ${isFiltered ? 'both' : 'neither'} (--all for all jobs)`,
      );
    }
    return isFiltered ? changeMatching(context, verb, `${verb.action}Jobs`) : changeNamed(context, verb);
  },
}));

export const deadRetry: CommandSpec = {
  name: 'dead retry',
  summary: 'Run jobs that failed for good again, all of them or by a filter',
  options: [...JOB_FILTER, YES],
  examples: ['dead retry --type sendEmail --yes'],
  run: (context) => changeMatching(context, RETRY, 'retryDead'),
};

async function changeNamed(context: Context, verb: Verb): Promise<Answer> {
  const { given } = context;
  // All of them before the first is changed.
  for (const id of given.words) checkJobId(id);
  const changes: Change[] = [];
  for (const id of given.words) {
    const change = await context.change({
      action: `${verb.action}Job`,
      about: { target: id },
      make: (scheduler) => verb.one(scheduler, id, given.text('reason')),
      came: ({ isDone }) => (isDone ? {} : 'refused'),
    });
    changes.push(change);
  }
  const lines = (width: number) =>
    table<Change>(
      [
        { title: 'id', cell: ({ id }) => id, keep: true },
        { title: 'result', cell: ({ result, isDone }) => styled(isDone ? 'green' : 'yellow', result) },
      ],
      changes,
      width,
    );
  const isDone = changes.every((change) => change.isDone);
  return {
    data: {
      action: verb.action,
      changes: changes.map(({ id, result, isDone: changed }) => ({ id, result, changed })),
    },
    lines: ({ width }) => lines(width),
    exitCode: isDone ? EXIT.fine : EXIT.wrong,
  };
}

async function changeMatching(context: Context, verb: Verb, action: string): Promise<Answer> {
  const { operations } = await context.scheduler();
  const filter = jobFilter(context.given);
  const count = await operations.countMatching(filter, verb.action);
  if (count.count === 0) return said({ ...NOTHING, action: verb.action }, `No job to ${verb.action}.`);
  const question = `This will ${verb.action} ${counted(count, 'job')}.`;
  if (!(await context.confirm(question)))
    return said({ ...NOTHING, action: verb.action, isAborted: true }, 'Nothing was changed.', EXIT.wrong);
  const bar = context.progress(verb.action);
  const reason = context.given.text('reason');
  const options: BulkOptions = {
    ...(reason !== undefined && { reason }),
    signal: context.signal,
    onProgress: ({ matched }) => bar.show(matched, count.count),
  };
  const answer = await context.change({
    action,
    about: { filter: { ...filter, ...(context.given.flag('all') && { all: 'true' }) } },
    make: (scheduler) => scheduler.operations[`${verb.action}Jobs`](filter, options).finally(() => bar.end()),
    came: countsOf,
  });
  const isAll = !answer.isAborted && Object.keys(answer.refused).length === 0;
  return said({ action: verb.action, ...answer }, sentenceOf(answer, verb), isAll ? EXIT.fine : EXIT.wrong);
}

const NOTHING: BulkAnswer = { matched: 0, changed: 0, requested: 0, refused: {}, isAborted: false };

function sentenceOf({ changed, matched, requested, refused, isAborted }: BulkAnswer, { past }: Verb): string {
  const left = Object.entries(refused).map(([status, count]) => `${number(count)} ${status}`);
  return [
    `${number(changed)} of ${number(matched)} jobs ${past}`,
    requested === 0 ? '' : ` (${number(requested)} of them run: their workers were asked)`,
    left.length === 0 ? '' : `; left alone: ${left.join(', ')}`,
    isAborted ? '; interrupted, do it again for the rest' : '',
    '.',
  ].join('');
}
