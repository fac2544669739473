import type { ScheduleQueryOptions } from '../../config/call-options.js';
import { resolveSchedule, type ScheduleOptions } from '../../config/schedule-options.js';
import { SYMBOLS } from '../../config/symbols.js';
import { ChronosError } from '../../domain/errors.js';
import { parseInstant } from '../../domain/instant.js';
import { nextRuns, occurrencesOf } from '../../domain/occurrences.js';
import { notFound, type Answer, type CommandSpec } from '../command.js';
import type { Context } from '../context.js';
import { oneOf, wholeNumber } from '../readers.js';
import { styled } from '../styled.js';
import { RULE_OPTIONS, scheduleGiven } from './schedule-options.js';
import { previewTable, scheduleLines, scheduleTable } from './schedules-view.js';

const SKIPS_SHOWN = 5;

export const SCHEDULE_ID = { name: '<id>', help: 'of the schedule' };

export const scheduleCommands: readonly CommandSpec[] = [
  {
    name: 'schedules list',
    summary: 'List schedules, in the order of their ids',
    options: [
      {
        flags: '--owner <owner>',
        help: 'defined in code, or stored by the api',
        read: oneOf(['code', 'api']),
      },
      { flags: '--type <taskType>', help: 'of this task type' },
      { flags: '--user <id>', help: 'of this user' },
      { flags: '--active', help: 'only those that are active' },
      { flags: '--limit <n>', help: 'at most this many (default: 100)', read: wholeNumber(1, 1000) },
      { flags: '--after <id>', help: 'those after this id' },
    ],
    examples: ['schedules list --owner api', 'schedules list --type sendDigest --json'],
    async run(context) {
      const query: ScheduleQueryOptions = context.given.picked({
        ...{ owner: 'owner', taskType: 'type', userId: 'user', isActive: 'active' },
        ...{ limit: 'limit', after: 'after' },
      });
      const { schedules, next } = await (await context.scheduler()).pageSchedules(query);
      return {
        data: { schedules, next },
        lines: (view) => [
          ...scheduleTable(schedules, view),
          ...(next === null ? [] : [styled('dim', `More: --after ${next}`)]),
        ],
      };
    },
  },
  {
    name: 'schedules show',
    summary: 'Show a schedule, its next times and what it skipped',
    arguments: [SCHEDULE_ID],
    examples: ['schedules show daily-report'],
    async run(context) {
      const { word } = context.given;
      const scheduler = await context.scheduler();
      const schedule = await scheduler.getSchedule(word);
      if (schedule === null) return notFound('schedule', word);
      const skips = await scheduler.getSkips(word, SKIPS_SHOWN);
      return {
        data: { schedule, nextRuns: schedule.nextRuns(SKIPS_SHOWN), skips },
        lines: (view) => scheduleLines(schedule, skips, view),
      };
    },
  },
  {
    name: 'schedules preview',
    summary: 'Show the next times of a schedule, or of a rule that is not stored',
    arguments: [{ name: '[id]', help: 'of a schedule; or say a rule' }],
    options: [
      ...RULE_OPTIONS,
      { flags: '--count <n>', help: 'how many (default: 10)', read: wholeNumber(1, 1000) },
      { flags: '--from <time>', help: 'after this (default: now)' },
    ],
    examples: [
      'schedules preview daily-report --count 5',
      "schedules preview --cron '0 8 * * MON' --timezone Asia/Tokyo",
    ],
    run: preview,
  },
];

async function preview(context: Context): Promise<Answer> {
  const { given } = context;
  const rule = scheduleGiven(given);
  if (given.words.length > 0 === Object.keys(rule).length > 0) throw neither();
  const count = given.number('count') ?? 10;
  const from = given.text('from');
  if (given.words.length > 0) {
    const schedule = await (await context.scheduler()).getSchedule(given.word);
    if (schedule === null) return notFound('schedule', given.word);
    return previewed(schedule.nextRuns(count, from), schedule.rule?.timezone ?? 'UTC');
  }
  // A rule needs no database.
  const { TIMEZONE = 'UTC' } = context.surroundings.environment;
  const zone = { timezone: TIMEZONE, symbols: new Map(Object.entries(SYMBOLS)) };
  const resolved = resolveSchedule(rule as ScheduleOptions, zone, 'the rule').rule;
  if (resolved === null) throw neither();
  const start = from === undefined ? context.clock.now() : parseInstant(from, resolved.timezone, '--from');
  return previewed(nextRuns(occurrencesOf(resolved, start), count, start), resolved.timezone);
}

function neither(): ChronosError {
  return new ChronosError(
    'INVALID_ARGUMENT',
    'schedules preview takes either the id of a schedule or a rule, such as --cron',
  );
}

function previewed(times: readonly Date[], timezone: string): Answer {
  return { data: { timezone, times }, lines: (view) => previewTable(times, timezone, view) };
}
