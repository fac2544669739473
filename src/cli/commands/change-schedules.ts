import type { PauseOptions } from '../../config/method-options.js';
import { parseInstant } from '../../domain/instant.js';
import { EXIT } from '../../process/exit.js';
import type { Scheduler } from '../../scheduler.js';
import type { BackfillResult, BackfillPreview } from '../../schedules/stored/manual-runs.js';
import type { NewSchedule, ScheduleUpsert } from '../../schedules/stored/schedule-input.js';
import { invalidArgument, option } from '../arguments.js';
import { type CommandResult, type CommandSpec, notFound, message } from '../command.js';
import type { Context } from '../context.js';
import { instant, number, plural, formatDuration } from '../terminal/format.js';
import { YES } from './filters.js';
import { SCHEDULE_OPTIONS, scheduleInput, unset, UNSET } from './schedule-options.js';
import { SCHEDULE_ID } from './schedules.js';

export const scheduleChanges: readonly CommandSpec[] = [
  {
    name: 'schedules add',
    summary: 'Store a schedule; any worker creates its jobs',
    arguments: [{ name: '<taskType>', help: 'task type of its jobs' }],
    options: [
      option('--id <id>', 'id of the schedule (default: a generated one)'),
      ...SCHEDULE_OPTIONS,
      option('--paused', 'store it paused'),
    ],
    examples: [
      "schedules add sendDigest --id digest --cron '0 8 * * MON' --timezone Asia/Tokyo",
      'schedules add pollInbox --every 5m --overlap skip --queue mail',
    ],
    async run(context) {
      const { args } = context;
      const schedule = {
        ...scheduleInput(args),
        ...args.pick('id'),
        taskType: args.first,
        ...(args.flag('paused') && { isActive: false }),
      } as NewSchedule;
      const added = await context.change({
        action: 'addSchedule',
        before: { ...args.pickAs({ target: 'id' }), filter: { taskType: args.first } },
        change: (scheduler) => scheduler.addSchedule(schedule),
        after: (target) => ({ target }),
      });
      return message({ id: added }, `Added the schedule ${added}.`);
    },
  },
  {
    name: 'schedules upsert',
    summary: 'Store a schedule, or change its whole definition; it stays paused if it is paused',
    arguments: [SCHEDULE_ID, { name: '<taskType>', help: 'task type of its jobs' }],
    options: SCHEDULE_OPTIONS,
    examples: ["schedules upsert digest sendDigest --cron '0 8 * * MON' --timezone Asia/Tokyo"],
    async run(context) {
      const { args } = context;
      const [id = '', taskType = ''] = args.positionals;
      const schedule = { ...scheduleInput(args), id, taskType } as ScheduleUpsert;
      const upserted = await context.change({
        action: 'upsertSchedule',
        before: { target: id, filter: { taskType } },
        change: (scheduler) => scheduler.upsertSchedule(schedule),
      });
      return message(upserted, `The schedule ${id} is ${upserted.result}.`);
    },
  },
  {
    name: 'schedules update',
    summary: 'Change a stored schedule; a changed rule applies from now on',
    arguments: [SCHEDULE_ID],
    options: [option('--type <taskType>', 'task type of its jobs'), ...SCHEDULE_OPTIONS, UNSET],
    examples: [
      "schedules update digest --cron '0 9 * * MON'",
      'schedules update digest --unset queue,maxRuns',
    ],
    async run(context) {
      const { args } = context;
      const patch = { ...scheduleInput(args), ...args.pickAs({ taskType: 'type' }), ...unset(args) };
      if (Object.keys(patch).length === 0)
        throw invalidArgument('schedules update needs at least one option to change, such as --cron');
      return changeNamed(context, 'updateSchedule', 'updated', (scheduler, id) =>
        scheduler.updateSchedule(id, patch),
      );
    },
  },
  {
    name: 'schedules remove',
    summary: 'Remove a schedule; its jobs stay',
    arguments: [SCHEDULE_ID],
    options: [YES],
    examples: ['schedules remove digest --yes'],
    run: remove,
  },
  {
    name: 'schedules pause',
    summary: 'Pause a schedule, stored or in code: it creates no jobs until it is resumed',
    arguments: [SCHEDULE_ID],
    options: [
      option('--reason <text>', 'why'),
      option('--by <name>', 'who (default: the user in audit entries)'),
    ],
    examples: ['schedules pause digest --reason "moving the mail server" --by ada'],
    async run(context) {
      const options: PauseOptions = { by: context.host.who, ...context.args.pick('reason', 'by') };
      return changeNamed(context, 'pauseSchedule', 'paused', (scheduler, id) =>
        scheduler.pauseSchedule(id, options),
      );
    },
  },
  {
    name: 'schedules resume',
    summary: 'Resume a paused schedule from now on',
    arguments: [SCHEDULE_ID],
    examples: ['schedules resume digest'],
    run: (context) =>
      changeNamed(context, 'resumeSchedule', 'resumed', (scheduler, id) => scheduler.resumeSchedule(id)),
  },
  {
    name: 'schedules trigger',
    summary: 'Run a schedule once now; its overlap policy applies',
    arguments: [SCHEDULE_ID],
    examples: ['schedules trigger digest'],
    async run(context) {
      const { first: id } = context.args;
      const result = await context.change({
        action: 'triggerSchedule',
        before: { target: id },
        change: (scheduler) => scheduler.triggerSchedule(id),
        after: ({ triggered }) => (triggered ? {} : 'refused'),
      });
      if (result.triggered) return message(result, `Triggered: its job is ${result.jobId}.`);
      if (result.reason === 'notFound') return notFound('schedule', id);
      const state =
        result.reason === 'waiting'
          ? 'is waiting to start'
          : `has been running for ${formatDuration(result.runningFor)}`;
      const sentence = `Not triggered: ${result.jobId} ${state}, and runs of '${id}' must not overlap.`;
      return message(result, sentence, EXIT.failure);
    },
  },
];

async function remove(context: Context): Promise<CommandResult> {
  const { first: id } = context.args;
  const schedule = await (await context.scheduler()).getSchedule(id);
  if (schedule === null) return notFound('schedule', id);
  const inCode =
    schedule.owner === 'code' ? ' It is defined in code: the next worker that starts stores it again.' : '';
  const question = `This will remove the schedule '${id}' and its ${plural(schedule.waiting, 'pending run')}; its jobs stay.${inCode}`;
  if (!(await context.confirm(question)))
    return message({ id, removed: false }, 'Nothing was removed.', EXIT.failure);
  return changeNamed(context, 'removeSchedule', 'removed', (writable, id) => writable.removeSchedule(id));
}

/** Changes the schedule whose id is the first argument, and reports that it is `pastTense`. */
async function changeNamed(
  context: Context,
  action: string,
  pastTense: string,
  change: (scheduler: Scheduler, id: string) => Promise<boolean>,
): Promise<CommandResult> {
  const { first: id } = context.args;
  const found = await context.change({
    action,
    before: { target: id },
    change: (scheduler) => change(scheduler, id),
    after: (isFound) => (isFound ? {} : 'refused'),
  });
  if (!found) return notFound('schedule', id);
  return message({ id, [pastTense]: true }, `The schedule ${id} is ${pastTense}.`);
}

export const backfillCommand: CommandSpec = {
  name: 'schedules backfill',
  summary: 'Create the missing jobs of past occurrences, from and to inclusive',
  arguments: [SCHEDULE_ID],
  options: [
    option('--from <time>', 'time of the first occurrence'),
    option('--to <time>', 'time of the last occurrence (default: now)'),
    YES,
  ],
  examples: ["schedules backfill digest --from '2026-11-01' --to '2026-11-08' --yes"],
  run: backfill,
};

async function backfill(context: Context): Promise<CommandResult> {
  const { args, clock } = context;
  const zone = context.settings().options.timezone ?? 'UTC';
  const from = parseInstant(args.text('from'), zone, '--from');
  const last = args.text('to');
  const to = last === undefined ? clock.now() : parseInstant(last, zone, '--to');
  if (from > to) throw invalidArgument('--from must not be after --to, or in the future');
  const preview = await (await context.operations()).previewBackfill(args.first, from, to);
  const { occurrences, existing } = preview;
  const missing = occurrences - existing;
  if (missing === 0)
    return message(
      { occurrences, existing, isAborted: false },
      `Nothing to create: ${plural(occurrences, 'occurrence')}, and each has a job.`,
    );
  const question = `This will create ${plural(missing, 'job')} for occurrences from ${instant(from)} to ${instant(to)}; ${number(existing)} more already have one.`;
  if (!(await context.confirm(question)))
    return message({ occurrences: 0, existing: 0, isAborted: true }, 'No change made.', EXIT.failure);
  const total = await context.change({
    action: 'backfillSchedule',
    before: { target: args.first, filter: { from: from.toISOString(), to: to.toISOString() } },
    change: (scheduler) => backfillPieces(context, scheduler, preview),
    after: (counts) => ({ counts: { ...counts } }),
  });
  const { aborted: isAborted } = context.signal;
  const sentence = `${plural(total.occurrences, 'occurrence')}, ${number(total.existing)} of them already had a job${isAborted ? '; interrupted, run it again for the rest' : ''}.`;
  return message({ ...total, isAborted }, sentence, isAborted ? EXIT.failure : EXIT.success);
}

/** One period after the other, to show progress and to stop at Ctrl-C. */
async function backfillPieces(
  context: Context,
  scheduler: Scheduler,
  { pieces, occurrences }: BackfillPreview,
): Promise<BackfillResult> {
  const { args, signal } = context;
  const total = { occurrences: 0, existing: 0 };
  const bar = context.progress('backfill');
  try {
    for (const { from, to } of pieces) {
      if (signal.aborted) break;
      const piece = await scheduler.backfill(args.first, from, to);
      total.occurrences += piece.occurrences;
      total.existing += piece.existing;
      bar.show(total.occurrences, occurrences);
    }
  } finally {
    bar.end();
  }
  return total;
}
