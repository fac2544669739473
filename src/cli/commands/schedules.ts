import { type ScheduleQueryOptions, scheduleQueryShapes } from '../../config/method-options.js';
import { SCHEDULE_SYMBOLS } from '../../config/rule-options.js';
import { resolveSchedule, type ScheduleOptions } from '../../config/schedule-options.js';
import { nextRuns, occurrencesOf } from '../../domain/calendar/occurrences.js';
import type { Rule } from '../../domain/calendar/rule.js';
import { parseInstant } from '../../domain/instant.js';
import type { Pause } from '../../domain/schedule/schedule.js';
import { jsonText } from '../../domain/text.js';
import { integer } from '../../domain/validation.js';
import type { SkipView, StoredSchedule } from '../../schedules/stored/stored-schedules.js';
import { invalidArgument, option } from '../arguments.js';
import { type CommandResult, type CommandSpec, notFound, type View } from '../command.js';
import type { Context } from '../context.js';
import { instant, formatMoment, NONE, formatRelative, formatDuration } from '../terminal/format.js';
import { factLines, type Line, type Span, styled } from '../terminal/styled.js';
import { type Column, table } from '../terminal/table.js';
import { page, PAGE } from './filters.js';
import { nextPageHint } from './job-views.js';
import { RULE_OPTIONS, scheduleInput } from './schedule-options.js';

const MAX_SHOWN = 5;
const NEEDS_ID_OR_RULE = 'schedules preview needs either the id of a schedule or a rule, such as --cron';

export const SCHEDULE_ID = { name: '<id>', help: 'id of the schedule' };

export const scheduleCommands: readonly CommandSpec[] = [
  {
    name: 'schedules list',
    summary: 'List schedules in the order of their ids',
    options: [
      option(
        '--owner <owner>',
        'code (defined in code) or api (added at run time)',
        scheduleQueryShapes.owner,
      ),
      option('--type <taskType>', 'of this task type'),
      option('--user <id>', 'of this user'),
      option('--active', 'only active ones'),
      ...PAGE,
    ],
    examples: ['schedules list --owner api', 'schedules list --type sendDigest --json'],
    async run(context) {
      const query: ScheduleQueryOptions = {
        ...context.args.pick('owner'),
        ...page(context.args),
        ...context.args.pickAs({ taskType: 'type', userId: 'user', isActive: 'active' }),
      };
      const found = await (await context.scheduler()).listSchedules(query);
      return {
        data: found,
        lines: (view) => [...scheduleTable(found.items, view), ...nextPageHint(found.next)],
      };
    },
  },
  {
    name: 'schedules show',
    summary: 'Show a schedule, its next runs and its last skips',
    arguments: [SCHEDULE_ID],
    examples: ['schedules show daily-report'],
    async run(context) {
      const { first: id } = context.args;
      const scheduler = await context.scheduler();
      const schedule = await scheduler.getSchedule(id);
      if (schedule === null) return notFound('schedule', id);
      const { items: skips } = await scheduler.getSkips(id, { limit: MAX_SHOWN });
      return {
        data: { schedule, nextRuns: schedule.nextRuns(MAX_SHOWN), skips },
        lines: (view) => scheduleLines(schedule, skips, view),
      };
    },
  },
  {
    name: 'schedules preview',
    summary: 'Show the next runs of a schedule, or of a rule that is not stored',
    arguments: [{ name: '[id]', help: 'id of a schedule, unless a rule is specified' }],
    options: [
      ...RULE_OPTIONS,
      option('--count <n>', 'how many (default: 10)', integer(1, 1000)),
      option('--from <time>', 'after this time (default: now)'),
    ],
    examples: [
      'schedules preview daily-report --count 5',
      "schedules preview --cron '0 8 * * MON' --timezone Asia/Tokyo",
    ],
    run: preview,
  },
];

async function preview(context: Context): Promise<CommandResult> {
  const { args } = context;
  const rule = scheduleInput(args);
  if (args.positionals.length > 0 === Object.keys(rule).length > 0) throw invalidArgument(NEEDS_ID_OR_RULE);
  const count = args.number('count') ?? 10;
  const from = args.text('from');
  if (args.positionals.length > 0) {
    const schedule = await (await context.scheduler()).getSchedule(args.first);
    if (schedule === null) return notFound('schedule', args.first);
    return toPreview(schedule.nextRuns(count, from), schedule.rule?.timezone ?? 'UTC');
  }
  // The next runs of a rule are computed without a database.
  const { TIMEZONE = 'UTC' } = context.host.environment;
  const zone = { timezone: TIMEZONE, symbols: new Map(Object.entries(SCHEDULE_SYMBOLS)) };
  const resolved = resolveSchedule(rule as ScheduleOptions, zone, 'the rule').rule;
  if (resolved === null) throw invalidArgument(NEEDS_ID_OR_RULE);
  const start = from === undefined ? context.clock.now() : parseInstant(from, resolved.timezone, '--from');
  return toPreview(nextRuns(occurrencesOf(resolved, start), count, start), resolved.timezone);
}

function toPreview(times: readonly Date[], timezone: string): CommandResult {
  return { data: { timezone, times }, lines: (view) => previewTable(times, timezone, view) };
}

/** A rule in one line. */
export function ruleText(rule: Rule | null): string {
  if (rule === null) return 'only when triggered';
  const { cron, fields, every, constraints, between, except, timezone, startsAt, endsAt } = rule;
  return [
    cron ?? (every === undefined ? jsonText(fields) : `every ${formatDuration(every)}`),
    ...Object.entries(constraints ?? {}).map(([field, values]) => `${field} ${values.join(',')}`),
    ...(between === undefined ? [] : [`between ${between.join(' and ')}`]),
    ...(except === undefined ? [] : [`except ${except.join(',')}`]),
    ...(startsAt === undefined ? [] : [`from ${instant(startsAt)}`]),
    ...(endsAt === undefined ? [] : [`until ${instant(endsAt)}`]),
    timezone,
  ].join(' ');
}

function scheduleTable(schedules: readonly StoredSchedule[], { width, now }: View): Line[] {
  if (schedules.length === 0) return ['No schedules.'];
  const columns: Column<StoredSchedule>[] = [
    { title: 'id', cell: ({ id }) => id, keep: true },
    { title: 'owner', cell: ({ owner }) => owner },
    { title: 'runs', cell: ({ taskType }) => taskType },
    { title: 'state', cell: stateSpan, keep: true },
    {
      title: 'next',
      cell: ({ isActive, nextRunAt }) => (isActive ? formatRelative(nextRunAt, now) : NONE),
      align: 'right',
    },
    { title: 'last', cell: ({ lastRunAt }) => formatRelative(lastRunAt, now), align: 'right' },
    { title: 'rule', cell: ({ rule }) => ruleText(rule) },
  ];
  return table(columns, schedules, width);
}

function scheduleLines(schedule: StoredSchedule, skips: readonly SkipView[], view: View): Line[] {
  const { now } = view;
  const { paused, disabledReason, payload, queue, priority, overlap, misfire, jitter, maxRuns, runs } =
    schedule;
  const facts = factLines([
    ['state', stateSpan(schedule)],
    ['why', paused === null ? disabledReason : pauseText(paused, now)],
    ['owner', schedule.owner],
    ['runs', schedule.taskType],
    ['rule', ruleText(schedule.rule)],
    ['next', formatMoment(schedule.nextRunAt, now)],
    ['last', formatMoment(schedule.lastRunAt, now)],
    ['active', schedule.active],
    ['pending', schedule.waiting === 0 ? null : String(schedule.waiting)],
    ['queue', `${queue ?? 'none'}, priority ${priority}`],
    [
      'policies',
      `overlap ${overlap}, misfire ${misfire.policy} within ${formatDuration(misfire.within)}, jitter ${formatDuration(jitter)}`,
    ],
    ['created', `${runs}${maxRuns === null ? '' : ` of ${maxRuns}`}`],
    ['user', schedule.userId],
    ['payload', jsonText(payload)],
    ...schedule.nextRuns(3).map((at) => ['then', formatMoment(at, now)] as const),
    ...skips.map((skip) => ['skipped', `${formatMoment(skip.at, now)}: ${skip.reason}`] as const),
  ]);
  return [styled('bold', `schedule ${schedule.id}`), ...facts];
}

/** Each time in UTC, in the zone of the schedule, and relative to now. */
function previewTable(times: readonly Date[], timezone: string, { width, now }: View): Line[] {
  if (times.length === 0) return ['No further runs.'];
  const local = new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone: timezone, weekday: 'short', year: 'numeric', month: 'short', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
  });
  const columns: Column<Date>[] = [
    { title: 'utc', cell: instant },
    { title: timezone, cell: (at) => local.format(at) },
    { title: 'when', cell: (at) => formatRelative(at, now), align: 'right' },
  ];
  return table(columns, times, width);
}

function stateSpan({ isActive, paused, disabledReason, nextRunAt, rule, invalid }: StoredSchedule): Span {
  if (invalid !== null) return styled('red', 'invalid');
  if (paused !== null) return styled('yellow', 'paused');
  if (disabledReason !== null) return styled('red', 'disabled');
  if (!isActive) return styled('dim', 'inactive');
  if (rule === null) return styled('dim', 'manual');
  return nextRunAt === null ? styled('dim', 'ended') : styled('green', 'active');
}

function pauseText({ at, by, reason }: Pause, now: Date): string {
  const who = by === null ? '' : ` by ${by}`;
  return `paused ${formatRelative(at, now)}${who}${reason === null ? '' : `: ${reason}`}`;
}
