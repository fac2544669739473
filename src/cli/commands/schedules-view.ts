import type { Rule } from '../../domain/rule.js';
import { jsonText } from '../../domain/text.js';
import type { StoredSchedule } from '../../schedules/schedule-view.js';
import type { SkipDocument } from '../../domain/schedule.js';
import type { View } from '../command.js';
import { styled, type Line, type Span } from '../styled.js';
import { table, type Column } from '../table.js';
import { instant, moment, NONE, relative, span } from '../times.js';

/** What a rule says, in one line. */
export function ruleText(rule: Rule | null): string {
  if (rule === null) return 'only when triggered';
  const { cron, fields, every, only, between, except, timezone, startsAt, endsAt } = rule;
  return [
    cron ?? (every === undefined ? jsonText(fields) : `every ${span(every)}`),
    ...Object.entries(only ?? {}).map(([field, values]) => `${field} ${values.join(',')}`),
    ...(between === undefined ? [] : [`between ${between.join(' and ')}`]),
    ...(except === undefined ? [] : [`except ${except.join(',')}`]),
    ...(startsAt === undefined ? [] : [`from ${instant(startsAt)}`]),
    ...(endsAt === undefined ? [] : [`until ${instant(endsAt)}`]),
    timezone,
  ].join(' ');
}

export function scheduleTable(schedules: readonly StoredSchedule[], { width, now }: View): Line[] {
  if (schedules.length === 0) return ['No schedules.'];
  const columns: Column<StoredSchedule>[] = [
    { title: 'id', cell: ({ id }) => id, keep: true },
    { title: 'owner', cell: ({ owner }) => owner },
    { title: 'runs', cell: ({ taskType }) => taskType },
    { title: 'state', cell: stateOf, keep: true },
    {
      title: 'next',
      cell: ({ isActive, nextRunAt }) => (isActive ? relative(nextRunAt, now) : NONE),
      align: 'right',
    },
    { title: 'last', cell: ({ lastRunAt }) => relative(lastRunAt, now), align: 'right' },
    { title: 'rule', cell: ({ rule }) => ruleText(rule) },
  ];
  return table(columns, schedules, width);
}

export function scheduleLines(schedule: StoredSchedule, skips: readonly SkipDocument[], view: View): Line[] {
  const { now } = view;
  const { paused, disabledReason, payload, queue, priority, overlap, misfire, jitter, maxRuns, runs } =
    schedule;
  const facts: readonly (readonly [string, Span | null])[] = [
    ['state', stateOf(schedule)],
    ['why', paused === null ? disabledReason : pauseText(schedule, now)],
    ['owner', schedule.owner],
    ['runs', schedule.taskType],
    ['rule', ruleText(schedule.rule)],
    ['next', moment(schedule.nextRunAt, now)],
    ['last', moment(schedule.lastRunAt, now)],
    ['active', schedule.active],
    ['waiting', schedule.waiting === 0 ? null : String(schedule.waiting)],
    ['queue', `${queue ?? 'none'}, priority ${priority}`],
    [
      'policies',
      `overlap ${overlap}, misfire ${misfire.policy} within ${span(misfire.within)}, jitter ${span(jitter)}`,
    ],
    ['made', `${runs}${maxRuns === null ? '' : ` of ${maxRuns}`}`],
    ['user', schedule.userId],
    ['payload', jsonText(payload)],
    ...schedule.nextRuns(3).map((at) => ['then', moment(at, now)] as const),
    ...skips.map((skip) => ['skipped', `${moment(skip.at, now)}: ${skip.reason}`] as const),
  ];
  return [
    styled('bold', `schedule ${schedule.id}`),
    ...facts.flatMap(([name, value]): Line[] =>
      value === null ? [] : [[styled('dim', name.padEnd(11)), value]],
    ),
  ];
}

/** When, in the zone of the schedule, in UTC, and from now. */
export function previewTable(times: readonly Date[], timezone: string, { width, now }: View): Line[] {
  if (times.length === 0) return ['It never runs again.'];
  const local = new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone: timezone, weekday: 'short', year: 'numeric', month: 'short', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
  });
  const columns: Column<Date>[] = [
    { title: 'utc', cell: instant },
    { title: timezone, cell: (at) => local.format(at) },
    { title: 'when', cell: (at) => relative(at, now), align: 'right' },
  ];
  return table(columns, times, width);
}

function stateOf({ isActive, paused, disabledReason, nextRunAt, rule }: StoredSchedule): Span {
  if (paused !== null) return styled('yellow', 'paused');
  if (disabledReason !== null) return styled('red', 'disabled');
  if (!isActive) return styled('dim', 'inactive');
  if (rule === null) return styled('dim', 'manual');
  return nextRunAt === null ? styled('dim', 'ended') : styled('green', 'active');
}

function pauseText({ paused }: StoredSchedule, now: Date): string | null {
  if (paused === null) return null;
  const by = paused.by === null ? '' : ` by ${paused.by}`;
  return `paused ${relative(paused.at, now)}${by}${paused.reason === null ? '' : `: ${paused.reason}`}`;
}
