import { MISFIRES, OVERLAPS } from '../../domain/schedule.js';
import { ChronosError } from '../../domain/errors.js';
import { hint } from '../../domain/nearest.js';
import type { SchedulePatch } from '../../schedules/schedule-patch.js';
import type { OptionSpec } from '../command.js';
import type { Given } from '../given.js';
import { duration, json, jsonObject, list, oneOf, wholeNumber, times } from '../readers.js';

/** When: the part of a schedule that can be previewed without storing it. */
export const RULE_OPTIONS: readonly OptionSpec[] = [
  { flags: '--cron <expression>', help: 'five or six fields, or @daily and its like' },
  { flags: '--every <duration>', help: 'an interval, such as 15m', read: duration },
  { flags: '--symbol <name>', help: 'a name, such as EVERY_HOUR' },
  { flags: '--timezone <zone>', help: 'such as Europe/Berlin (default: TIMEZONE, else UTC)' },
  { flags: '--between <times>', help: 'only between these times of the day: 09:00,17:30', read: times },
  { flags: '--except <days>', help: 'not on these days: 2026-12-24,12-25', read: list },
  { flags: '--starts-at <time>', help: 'not before' },
  { flags: '--ends-at <time>', help: 'not after' },
];

export const SCHEDULE_OPTIONS: readonly OptionSpec[] = [
  ...RULE_OPTIONS,
  { flags: '--payload <json>', help: 'of its jobs: JSON or @file', read: json },
  { flags: '--queue <name>', help: 'of its jobs' },
  { flags: '--priority <n>', help: '0 to 1000, lower is more urgent', read: wholeNumber(0, 1000) },
  { flags: '--overlap <policy>', help: `while a run goes on: ${OVERLAPS.join(', ')}`, read: oneOf(OVERLAPS) },
  { flags: '--misfire <policy>', help: `of missed runs: ${MISFIRES.join(', ')}`, read: oneOf(MISFIRES) },
  { flags: '--jitter <duration>', help: 'delay each run by up to this', read: duration },
  { flags: '--timeout <duration>', help: 'of one attempt', read: duration },
  { flags: '--max-running-time <duration>', help: 'of one run over all attempts', read: duration },
  { flags: '--max-runs <n>', help: 'end after this many', read: wholeNumber(1, Number.MAX_SAFE_INTEGER) },
  { flags: '--user <id>', help: 'whose it is' },
  {
    flags: '--options <json>',
    help: 'any other option of addSchedule(), as JSON or @file',
    read: jsonObject,
  },
];

export const UNSET: OptionSpec = {
  flags: '--unset <names>',
  help: 'options to take back, as addSchedule() calls them: queue,maxRuns',
  read: list,
};

const SETTABLE = [
  'queue',
  'priority',
  'overlap',
  'misfire',
  'jitter',
  'timeout',
  'maxRunningTime',
  'maxRuns',
];
const UNSETTABLE = [
  ...SETTABLE,
  'payload',
  'between',
  'except',
  'startsAt',
  'endsAt',
  'userId',
  'timezone',
  'retries',
  'environments',
  'seconds',
  'minutes',
  'hours',
  'days',
  'months',
  'weekdays',
];

/** What the options say, in the words of `addSchedule()`, which checks them. */
export function scheduleGiven(given: Given): SchedulePatch {
  const { misfire, ...said }: { misfire?: string } = given.picked({
    ...{ cron: 'cron', every: 'every', symbol: 'symbol', timezone: 'timezone', between: 'between' },
    ...{ except: 'except', startsAt: 'startsAt', endsAt: 'endsAt', payload: 'payload', queue: 'queue' },
    ...{ priority: 'priority', overlap: 'overlap', misfire: 'misfire', jitter: 'jitter', timeout: 'timeout' },
    ...{ maxRunningTime: 'maxRunningTime', maxRuns: 'maxRuns', userId: 'user' },
  });
  const more = given.value('options');
  return {
    ...(typeof more === 'object' ? more : {}),
    ...said,
    ...(misfire !== undefined && { misfire: { policy: misfire as (typeof MISFIRES)[number] } }),
  };
}

/** Each as null, which takes it back. */
export function unset(given: Given): SchedulePatch {
  const names = given.list('unset') ?? [];
  const unknown = names.find((name) => !UNSETTABLE.includes(name));
  if (unknown !== undefined) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `--unset takes back ${UNSETTABLE.join(', ')}; got '${unknown}'${hint(unknown, UNSETTABLE)}`,
    );
  }
  return Object.fromEntries(names.map((name) => [name, null]));
}
