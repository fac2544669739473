// What a schedule has to come to, by arithmetic of its own: nothing here asks the code under test when anything is due.
import type { JobDocument } from '../../src/domain/job.js';
import type { ScheduleDocument, SkipDocument } from '../../src/domain/schedule.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** How far two processes' ideas of the time may be apart, in milliseconds. */
const CLOCK_ERROR = 250;

/** When a schedule runs: at multiples of a step, of the epoch or from its anchor on, or at certain seconds. */
export type Rhythm =
  | { kind: 'step'; step: number; say: [method: string, ...args: unknown[]] }
  | { kind: 'anchored'; step: number; say: [method: string, ...args: unknown[]] }
  | { kind: 'seconds'; seconds: readonly number[]; say: [method: string, ...args: unknown[]] };

/** One line of the table that the definitions are made from. */
export interface Planned {
  name: string;
  rhythm: Rhythm;
  /** Half of them may overlap, the others are single instances, by default. */
  overlap: 'allow' | 'skip';
  /** How long its handler takes, in milliseconds. */
  takes: number;
}

/** Sixteen of twenty run every second, the rest in all other ways. */
const RHYTHMS: readonly Rhythm[] = [
  ...Array.from({ length: 14 }, (): Rhythm => ({ kind: 'step', step: SECOND, say: ['everySecond'] })),
  { kind: 'anchored', step: SECOND, say: ['every', '1s'] },
  { kind: 'anchored', step: SECOND, say: ['every', SECOND] },
  { kind: 'anchored', step: 2500, say: ['every', 2500] },
  { kind: 'step', step: 3 * SECOND, say: ['cron', '*/3 * * * * *'] },
  { kind: 'step', step: 5 * SECOND, say: ['everyFiveSeconds'] },
  {
    kind: 'seconds',
    seconds: [0, 1, 2, 13, 29, 30, 44, 59],
    say: ['seconds', [0, 1, 2, 13, 29, 30, 44, 59]],
  },
];

/** Most handlers take a moment; every tenth takes longer than its schedule's rhythm. */
export function tableOf(count: number): Planned[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `s${String(index).padStart(4, '0')}`,
    // Two in a row have the same, so that both halves have them all.
    rhythm: RHYTHMS[Math.floor(index / 2) % RHYTHMS.length] ?? {
      kind: 'step',
      step: SECOND,
      say: ['everySecond'],
    },
    overlap: index % 2 === 0 ? 'allow' : 'skip',
    takes: index % 20 >= 18 ? 1500 : index % 7,
  }));
}

/** Every instant after `from` and before `to`, in milliseconds. */
export function calendar(rhythm: Rhythm, anchor: number, from: number, to: number): number[] {
  const origin = rhythm.kind === 'anchored' ? anchor : 0;
  const step = rhythm.kind === 'seconds' ? SECOND : rhythm.step;
  const instants: number[] = [];
  for (let at = origin + Math.floor((from - origin) / step) * step; at < to; at += step) {
    if (at <= from) continue;
    if (rhythm.kind === 'seconds' && !rhythm.seconds.includes((at % MINUTE) / SECOND)) continue;
    instants.push(at);
  }
  return instants;
}

type Stored = Pick<ScheduleDocument, '_id' | 'createdAt' | 'anchor' | 'nextRunAt' | 'owed'>;
/** A job, and when the server wrote that it is finished: later than when its handler ended, `finishedAt`. */
type Run = { endedAt: number } & Pick<
  JobDocument,
  '_id' | 'scheduledFor' | 'status' | 'createdAt' | 'finishedAt' | 'firstStartedAt'
>;
type Skip = Omit<SkipDocument, 'expiresAt'>;

/** Compares what a schedule left behind with its calendar. Returns every violation. */
export function checkSchedule(
  planned: Planned,
  schedule: Stored,
  jobs: readonly Run[],
  skips: readonly Skip[],
): string[] {
  if (schedule.nextRunAt === null) return [`8: ${schedule._id} has no next time`];
  const { rhythm } = planned;
  const anchor = schedule.anchor.getTime();
  const next = schedule.nextRunAt.getTime();
  const expected = new Set(calendar(rhythm, anchor, schedule.createdAt.getTime(), next));
  const made = jobs.map(({ scheduledFor }) => scheduledFor?.getTime() ?? NaN);
  const skipped = skips.flatMap(({ at, until }) =>
    calendar(rhythm, anchor, at.getTime() - 1, until.getTime()),
  );
  return [
    ...checkNames(schedule, jobs),
    ...checkOnce(schedule, [...made, ...skipped], expected),
    ...(calendar(rhythm, anchor, next - 1, next + 1).length === 1
      ? []
      : [`8: ${schedule._id} is next due at ${iso(next)}, which is not in its calendar`]),
    ...schedule.owed.map(({ id }) => `12: ${schedule._id} still owes ${id}`),
    ...checkCounts(planned, anchor, skips),
    ...checkOverlaps(planned, jobs, skips),
  ];
}

/** A job is called by its occurrence. */
function checkNames({ _id }: Stored, jobs: readonly Run[]): string[] {
  return jobs
    .filter((job) => job._id !== `${_id}@${iso(job.scheduledFor?.getTime() ?? NaN)}`)
    .map((job) => `8: ${job._id} stands for ${String(job.scheduledFor?.toISOString())}`);
}

/** 8: every instant of the calendar became a job or a skip, not both, and nothing else did. */
function checkOnce({ _id }: Stored, decided: readonly number[], expected: ReadonlySet<number>): string[] {
  const times = new Map<number, number>();
  for (const at of decided) times.set(at, (times.get(at) ?? 0) + 1);
  return [
    ...[...expected].filter((at) => !times.has(at)).map((at) => `8: ${_id}@${iso(at)} is missing`),
    ...[...times]
      .filter(([at]) => !expected.has(at))
      .map(([at]) => `8: ${_id}@${iso(at)} is not in the calendar`),
    ...[...times]
      .filter(([, count]) => count > 1)
      .map(([at, count]) => `8: ${_id}@${iso(at)} is there ${count} times, as jobs and skips`),
  ];
}

function checkCounts({ name, rhythm }: Planned, anchor: number, skips: readonly Skip[]): string[] {
  return skips
    .filter(({ at, until, count }) => {
      return count !== null && count !== calendar(rhythm, anchor, at.getTime() - 1, until.getTime()).length;
    })
    .map(({ at, count }) => `8: ${name} says that it skipped ${String(count)} from ${at.toISOString()} on`);
}

/**
 * 8, the policies: a single instance never runs twice at once, and is skipped only while another run is not finished.
 * Where runs may overlap nothing is skipped for that reason.
 */
function checkOverlaps({ name, overlap }: Planned, jobs: readonly Run[], skips: readonly Skip[]): string[] {
  const refused = skips.filter(({ reason }) => reason === 'overlap');
  if (overlap === 'allow') {
    return refused.map(({ _id }) => `8: ${_id} was skipped, although runs of ${name} may overlap`);
  }
  const ordered = jobs.toSorted((a, b) => startOf(a) - startOf(b));
  const twice = ordered.slice(1).flatMap((job, index) => {
    const before = ordered[index];
    const left = before === undefined ? 0 : (before.finishedAt?.getTime() ?? Infinity) - startOf(job);
    return left > CLOCK_ERROR
      ? [`8: ${job._id} started ${left} ms before ${before?._id ?? ''} had ended`]
      : [];
  });
  const unfounded = refused.filter((skip) => !jobs.some((job) => wasInTheWay(job, skip)));
  return [
    ...twice,
    ...unfounded.map(
      ({ _id, activeId, since }) =>
        `8: ${_id} was skipped at ${since.toISOString()} for ${activeId ?? 'a run without a name'}, when no run of ${name} was unfinished`,
    ),
  ];
}

/** Decided on and not finished, as far as anybody could know, when the skip was decided. */
function wasInTheWay({ scheduledFor, endedAt }: Run, { since }: Skip): boolean {
  const decided = scheduledFor !== null && scheduledFor.getTime() <= since.getTime() + CLOCK_ERROR;
  return decided && endedAt >= since.getTime() - CLOCK_ERROR;
}

function startOf({ firstStartedAt, createdAt }: Run): number {
  return (firstStartedAt ?? createdAt).getTime();
}

function iso(instant: number): string {
  return Number.isNaN(instant) ? 'no time' : new Date(instant).toISOString();
}
