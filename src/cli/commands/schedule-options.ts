import { scheduleShapes } from '../../config/schedule-options.js';
import { didYouMean } from '../../domain/did-you-mean.js';
import { ChronosError } from '../../domain/errors.js';
import { MISFIRES, OVERLAPS } from '../../domain/schedule/schedule.js';
import { listOf, name, oneOf } from '../../domain/validation.js';
import type { SchedulePatch } from '../../schedules/stored/schedule-input.js';
import { type Arguments, json, jsonObject, reader } from '../arguments.js';
import type { OptionSpec } from '../command.js';

const shapes = scheduleShapes({ timezone: 'UTC', symbols: new Map() });

/** The rule of a schedule; `schedules preview` takes these without a stored schedule. */
export const RULE_OPTIONS: readonly OptionSpec[] = [
  { flags: '--cron <expression>', help: 'five or six fields, or @daily etc.' },
  { flags: '--every <duration>', help: 'an interval, such as 15m', read: reader(shapes.every) },
  { flags: '--symbol <name>', help: 'a named rule, such as EVERY_HOUR' },
  { flags: '--timezone <zone>', help: 'such as Europe/Berlin (default: TIMEZONE, else UTC)' },
  {
    flags: '--between <times>',
    help: 'only between these times of day: 09:00,17:30',
    read: reader(shapes.between),
  },
  { flags: '--except <days>', help: 'not on these days: 2026-12-24,12-25', read: reader(shapes.except) },
  { flags: '--starts-at <time>', help: 'not before this time' },
  { flags: '--ends-at <time>', help: 'not after this time' },
];

export const SCHEDULE_OPTIONS: readonly OptionSpec[] = [
  ...RULE_OPTIONS,
  { flags: '--payload <json>', help: 'payload of its jobs: JSON or @file', read: json },
  { flags: '--queue <name>', help: 'queue of its jobs' },
  { flags: '--priority <n>', help: '0 to 1000, lower is more urgent', read: reader(shapes.priority) },
  {
    flags: '--overlap <policy>',
    help: `if the previous run is still active: ${OVERLAPS.join(', ')}`,
    read: reader(shapes.overlap),
  },
  {
    flags: '--misfire <policy>',
    help: `for missed runs: ${MISFIRES.join(', ')}`,
    read: reader(oneOf(...MISFIRES)),
  },
  { flags: '--jitter <duration>', help: 'delay each run by up to this', read: reader(shapes.jitter) },
  { flags: '--timeout <duration>', help: 'time limit of one attempt', read: reader(shapes.timeout) },
  {
    flags: '--max-running-time <duration>',
    help: 'time limit of one run, over all attempts',
    read: reader(shapes.maxRunningTime),
  },
  {
    flags: '--max-runs <n>',
    help: 'end after this many runs',
    read: reader(shapes.maxRuns),
  },
  { flags: '--user <id>', help: 'user that the schedule belongs to' },
  {
    flags: '--options <json>',
    help: 'any other option of addSchedule(), as JSON or @file',
    read: jsonObject,
  },
];

export const UNSET: OptionSpec = {
  flags: '--unset <names>',
  help: 'options to reset, with their names in addSchedule(): queue,maxRuns',
  read: reader(listOf(name)),
};

const UNSETTABLE = [
  ...['queue', 'priority', 'overlap', 'misfire', 'jitter', 'timeout', 'maxRunningTime', 'maxRuns'],
  ...['payload', 'between', 'except', 'startsAt', 'endsAt', 'userId', 'timezone', 'retries', 'environments'],
  ...['seconds', 'minutes', 'hours', 'days', 'months', 'weekdays'],
];

/** The options as input of `addSchedule()`, which validates them. */
export function scheduleInput(args: Arguments): SchedulePatch {
  const { misfire, ...fields }: { misfire?: string } = args.picked({
    ...{ cron: 'cron', every: 'every', symbol: 'symbol', timezone: 'timezone', between: 'between' },
    ...{ except: 'except', startsAt: 'startsAt', endsAt: 'endsAt', payload: 'payload', queue: 'queue' },
    ...{ priority: 'priority', overlap: 'overlap', misfire: 'misfire', jitter: 'jitter', timeout: 'timeout' },
    ...{ maxRunningTime: 'maxRunningTime', maxRuns: 'maxRuns', userId: 'user' },
  });
  const more = args.value('options');
  return {
    ...(typeof more === 'object' ? more : {}),
    ...fields,
    ...(misfire !== undefined && { misfire: { policy: misfire as (typeof MISFIRES)[number] } }),
  };
}

/** Null resets an option. */
export function unset(args: Arguments): SchedulePatch {
  const names = args.list('unset') ?? [];
  const unknown = names.find((name) => !UNSETTABLE.includes(name));
  if (unknown !== undefined) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `--unset: must be one of ${UNSETTABLE.join(', ')}; got '${unknown}'${didYouMean(unknown, UNSETTABLE)}`,
    );
  }
  return Object.fromEntries(names.map((name) => [name, null]));
}
