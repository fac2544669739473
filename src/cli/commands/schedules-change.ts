import type { PauseOptions } from '../../config/call-options.js';
import type { Scheduler } from '../../scheduler.js';
import type { NewSchedule } from '../../schedules/given-schedule.js';
import { ChronosError } from '../../domain/errors.js';
import { EXIT } from '../../process/exit.js';
import { notFound, said, type Answer, type CommandSpec } from '../command.js';
import type { Context } from '../context.js';
import { span } from '../times.js';
import { YES } from './job-filter.js';
import { SCHEDULE_OPTIONS, scheduleGiven, unset, UNSET } from './schedule-options.js';
import { SCHEDULE_ID } from './schedules.js';

export const scheduleChanges: readonly CommandSpec[] = [
  {
    name: 'schedules add',
    summary: 'Store a schedule; every worker follows',
    arguments: [{ name: '<taskType>', help: 'what its jobs run' }],
    options: [
      { flags: '--id <id>', help: '(default: one that is generated)' },
      ...SCHEDULE_OPTIONS,
      { flags: '--paused', help: 'store it paused' },
    ],
    examples: [
      "schedules add sendDigest --id digest --cron '0 8 * * MON' --timezone Asia/Tokyo",
      'schedules add pollInbox --every 5m --overlap skip --queue mail',
    ],
    async run(context) {
      const { given } = context;
      const id = given.text('id');
      const asked = {
        ...scheduleGiven(given),
        taskType: given.word,
        ...(id !== undefined && { id }),
        ...(given.flag('paused') && { isActive: false }),
      } as NewSchedule;
      const added = await context.change({
        action: 'addSchedule',
        about: { ...(id !== undefined && { target: id }), filter: { taskType: given.word } },
        make: (scheduler) => scheduler.addSchedule(asked),
        came: (target) => ({ target }),
      });
      return said({ id: added }, `Added the schedule ${added}.`);
    },
  },
  {
    name: 'schedules update',
    summary: 'Change a stored schedule; a changed rule counts from now on',
    arguments: [SCHEDULE_ID],
    options: [{ flags: '--type <taskType>', help: 'what its jobs run' }, ...SCHEDULE_OPTIONS, UNSET],
    examples: [
      "schedules update digest --cron '0 9 * * MON'",
      'schedules update digest --unset queue,maxRuns',
    ],
    async run(context) {
      const { given } = context;
      const taskType = given.text('type');
      const patch = { ...scheduleGiven(given), ...(taskType !== undefined && { taskType }), ...unset(given) };
      if (Object.keys(patch).length === 0)
        throw new ChronosError(
          'INVALID_ARGUMENT',
          'schedules update needs something to change, such as --cron',
        );
      return changeFound(context, 'updateSchedule', 'updated', (scheduler, id) =>
        scheduler.updateSchedule(id, patch),
      );
    },
  },
  {
    name: 'schedules remove',
    summary: 'Remove a schedule; jobs it has made stay',
    arguments: [SCHEDULE_ID],
    options: [YES],
    examples: ['schedules remove digest --yes'],
    run: remove,
  },
  {
    name: 'schedules pause',
    summary: 'Let a schedule make no more jobs until it is resumed; also one in code',
    arguments: [SCHEDULE_ID],
    options: [
      { flags: '--reason <text>', help: 'why' },
      { flags: '--by <name>', help: 'who (default: as in the audit collection)' },
    ],
    examples: ['schedules pause digest --reason "the mail server moves" --by ada'],
    async run(context) {
      const options: PauseOptions = {
        by: context.who,
        ...context.given.picked({ reason: 'reason', by: 'by' }),
      };
      return changeFound(context, 'pauseSchedule', 'paused', (scheduler, id) =>
        scheduler.pauseSchedule(id, options),
      );
    },
  },
  {
    name: 'schedules resume',
    summary: 'Let a schedule go on from now',
    arguments: [SCHEDULE_ID],
    examples: ['schedules resume digest'],
    run: (context) =>
      changeFound(context, 'resumeSchedule', 'resumed', (scheduler, id) => scheduler.resumeSchedule(id)),
  },
  {
    name: 'schedules trigger',
    summary: 'Run a schedule once now, by the rules of its overlap policy',
    arguments: [SCHEDULE_ID],
    examples: ['schedules trigger digest'],
    async run(context) {
      const { word } = context.given;
      const answer = await context.change({
        action: 'triggerSchedule',
        about: { target: word },
        make: (scheduler) => scheduler.triggerSchedule(word),
        came: ({ triggered }) => (triggered ? {} : 'refused'),
      });
      if (answer.triggered) return said(answer, `Triggered: its job is ${answer.jobId}.`);
      if (answer.reason === 'notFound') return notFound('schedule', word);
      const sentence = `Not triggered: ${answer.jobId} is running for ${span(answer.runningFor)}, and runs of '${word}' must not overlap.`;
      return said(answer, sentence, EXIT.wrong);
    },
  },
];

async function remove(context: Context): Promise<Answer> {
  const { word } = context.given;
  const scheduler = await context.scheduler();
  const schedule = await scheduler.getSchedule(word);
  if (schedule === null) return notFound('schedule', word);
  const inCode =
    schedule.owner === 'code' ? ' It is defined in code: the next worker that starts stores it again.' : '';
  const question = `This will remove 1 schedule, '${word}', with ${schedule.waiting} runs in line; its jobs stay.${inCode}`;
  if (!(await context.confirm(question)))
    return said({ id: word, removed: false }, 'Nothing was removed.', EXIT.wrong);
  return changeFound(context, 'removeSchedule', 'removed', (changing, id) => changing.removeSchedule(id));
}

/** Changes the schedule that is named, where there is one. */
async function changeFound(
  context: Context,
  action: string,
  past: string,
  make: (scheduler: Scheduler, id: string) => Promise<boolean>,
): Promise<Answer> {
  const { word: id } = context.given;
  const found = await context.change({
    action,
    about: { target: id },
    make: (scheduler) => make(scheduler, id),
    came: (isFound) => (isFound ? {} : 'refused'),
  });
  return found ? said({ id, [past]: true }, `The schedule ${id} is ${past}.`) : notFound('schedule', id);
}
