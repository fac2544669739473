import { scheduleShapes } from '../../config/schedule-options.js';
import { MISFIRES, OVERLAPS } from '../../domain/schedule/schedule.js';
import { listOf, oneOf } from '../../domain/validation.js';
import type { SchedulePatch } from '../../schedules/stored/schedule-input.js';
import { type Arguments, json, jsonObject, option } from '../arguments.js';

const shapes = scheduleShapes({ timezone: 'UTC', symbols: new Map() });

/** The rule of a schedule. `schedules preview` accepts these for a rule that is not stored. */
export const RULE_OPTIONS = [
  option('--cron <expression>', 'five or six fields, or @daily etc.'),
  option('--every <duration>', 'an interval, such as 15m', shapes.every),
  option('--symbol <name>', 'a named rule, such as EVERY_HOUR'),
  option('--timezone <zone>', 'such as Europe/Berlin (default: TIMEZONE, else UTC)'),
  option('--between <times>', 'only between these times of day: 09:00,17:30', shapes.between),
  option('--except <days>', 'not on these days: 2026-12-24,12-25', shapes.except),
  option('--starts-at <time>', 'not before this time'),
  option('--ends-at <time>', 'not after this time'),
];

export const SCHEDULE_OPTIONS = [
  ...RULE_OPTIONS,
  option('--payload <json>', 'payload of its jobs: JSON or @file', json),
  option('--queue <name>', 'queue of its jobs'),
  option('--priority <n>', '0 to 1000, lower is more urgent', shapes.priority),
  option('--overlap <policy>', `if the previous run is still active: ${OVERLAPS.join(', ')}`, shapes.overlap),
  option('--misfire <policy>', `for missed runs: ${MISFIRES.join(', ')}`, oneOf(...MISFIRES)),
  option('--jitter <duration>', 'delay each run by up to this', shapes.jitter),
  option('--timeout <duration>', 'time limit of one attempt', shapes.timeout),
  option('--max-running-time <duration>', 'time limit of one run, over all attempts', shapes.maxRunningTime),
  option('--expires-in <duration>', 'do not start a run later than this after it was due', shapes.expiresIn),
  option('--max-runs <n>', 'end after this many runs', shapes.maxRuns),
  option('--user <id>', 'user that the schedule belongs to'),
  option('--options <json>', 'any other option of addSchedule(), as JSON or @file', jsonObject),
];

const UNSETTABLE = [
  ...[
    'queue',
    'priority',
    'overlap',
    'misfire',
    'jitter',
    'timeout',
    'maxRunningTime',
    'maxRuns',
    'expiresIn',
  ],
  ...['payload', 'between', 'except', 'startsAt', 'endsAt', 'userId', 'timezone', 'retries', 'environments'],
  ...['seconds', 'minutes', 'hours', 'days', 'months', 'weekdays'],
];

export const UNSET = option(
  '--unset <names>',
  'options to reset, with their names in addSchedule(): queue,maxRuns',
  listOf(oneOf(...UNSETTABLE)),
);

/** The options as input of `addSchedule()`, which validates them. */
export function scheduleInput(args: Arguments): SchedulePatch {
  const { misfire }: { misfire?: (typeof MISFIRES)[number] } = args.pick('misfire');
  return {
    ...(args.value('options') as object | undefined),
    ...args.pick('cron', 'every', 'symbol', 'timezone', 'between', 'except', 'startsAt', 'endsAt'),
    ...args.pick('payload', 'queue', 'priority', 'overlap', 'jitter', 'timeout', 'maxRunningTime', 'maxRuns'),
    ...args.pick('expiresIn'),
    ...args.pickAs({ userId: 'user' }),
    ...(misfire !== undefined && { misfire: { policy: misfire } }),
  };
}

/** Null resets an option. */
export function unset(args: Arguments): SchedulePatch {
  return Object.fromEntries((args.list('unset') ?? []).map((name) => [name, null]));
}
