import type { JobDocument } from '../../src/domain/job/job.js';
import type { ScheduleDocument, SkipDocument } from '../../src/domain/schedule/schedule.js';

// The expected calendar of each schedule, computed independently of the code under test.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Tolerated difference between the clocks of two processes. */
const CLOCK_ERROR_MS = 250;

/** When a schedule runs: at multiples of a step since the epoch or since its anchor, or at certain seconds. `call` is the builder method that defines it. */
export type Rhythm =
  | { kind: 'step'; step: number; call: [method: string, ...args: unknown[]] }
  | { kind: 'anchored'; step: number; call: [method: string, ...args: unknown[]] }
  | { kind: 'seconds'; seconds: readonly number[]; call: [method: string, ...args: unknown[]] };

/** A schedule of the test. */
export interface Planned {
  name: string;
  rhythm: Rhythm;
  overlap: 'allow' | 'skip';
  /** How long its handler takes, in milliseconds. */
  takes: number;
}

/** Sixteen of twenty run every second. */
const RHYTHMS: readonly Rhythm[] = [
  ...Array.from({ length: 14 }, (): Rhythm => ({ kind: 'step', step: SECOND, call: ['everySecond'] })),
  { kind: 'anchored', step: SECOND, call: ['every', '1s'] },
  { kind: 'anchored', step: SECOND, call: ['every', SECOND] },
  { kind: 'anchored', step: 2500, call: ['every', 2500] },
  { kind: 'step', step: 3 * SECOND, call: ['cron', '*/3 * * * * *'] },
  { kind: 'step', step: 5 * SECOND, call: ['everyFiveSeconds'] },
  {
    kind: 'seconds',
    seconds: [0, 1, 2, 13, 29, 30, 44, 59],
    call: ['seconds', [0, 1, 2, 13, 29, 30, 44, 59]],
  },
];

/** Most handlers are fast; every tenth takes longer than the interval of its schedule. */
export function planSchedules(count: number): Planned[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `s${String(index).padStart(4, '0')}`,
    // Two in a row have the same rhythm, so that each occurs with both overlap policies.
    rhythm: RHYTHMS[Math.floor(index / 2) % RHYTHMS.length] ?? {
      kind: 'step',
      step: SECOND,
      call: ['everySecond'],
    },
    overlap: index % 2 === 0 ? 'allow' : 'skip',
    takes: index % 20 >= 18 ? 1500 : index % 7,
  }));
}

/** Every occurrence after `from` and before `to`, in milliseconds. */
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

type Stored = Pick<ScheduleDocument, '_id' | 'createdAt' | 'anchor' | 'nextRunAt' | 'pending'>;
/** A job, and when its end was written, which is later than `finishedAt`. */
type Run = { endedAt: number } & Pick<
  JobDocument,
  '_id' | 'scheduledFor' | 'status' | 'createdAt' | 'finishedAt' | 'firstStartedAt'
>;
type Skip = Omit<SkipDocument, 'expiresAt'>;

/** Compares the jobs and skips of a schedule with its calendar. Returns every violation. */
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
    ...schedule.pending.map(({ id }) => `12: ${schedule._id} still has ${id} pending`),
    ...checkCounts(planned, anchor, skips),
    ...checkOverlaps(planned, jobs, skips),
  ];
}

/** The id of a job contains its occurrence. */
function checkNames({ _id }: Stored, jobs: readonly Run[]): string[] {
  return jobs
    .filter((job) => job._id !== `${_id}@${iso(job.scheduledFor?.getTime() ?? NaN)}`)
    .map((job) => `8: ${job._id} has the occurrence ${String(job.scheduledFor?.toISOString())}`);
}

/** 8: every occurrence of the calendar became either a job or a skip, and nothing else did. */
function checkOnce({ _id }: Stored, found: readonly number[], expected: ReadonlySet<number>): string[] {
  const times = new Map<number, number>();
  for (const at of found) times.set(at, (times.get(at) ?? 0) + 1);
  return [
    ...[...expected].filter((at) => !times.has(at)).map((at) => `8: ${_id}@${iso(at)} is missing`),
    ...[...times]
      .filter(([at]) => !expected.has(at))
      .map(([at]) => `8: ${_id}@${iso(at)} is not in the calendar`),
    ...[...times]
      .filter(([, count]) => count > 1)
      .map(([at, count]) => `8: ${_id}@${iso(at)} exists ${count} times, as jobs and skips`),
  ];
}

function checkCounts({ name, rhythm }: Planned, anchor: number, skips: readonly Skip[]): string[] {
  return skips
    .filter(({ at, until, count }) => {
      return count !== null && count !== calendar(rhythm, anchor, at.getTime() - 1, until.getTime()).length;
    })
    .map(
      ({ at, count }) =>
        `8: ${name} recorded a wrong number of skips, ${String(count)}, from ${at.toISOString()} on`,
    );
}

/**
 * 8, the policies: with overlap `skip`, runs never overlap and are skipped only while another run is unfinished. With
 * `allow`, no run is skipped because of overlap.
 */
function checkOverlaps({ name, overlap }: Planned, jobs: readonly Run[], skips: readonly Skip[]): string[] {
  const overlapSkips = skips.filter(({ reason }) => reason === 'overlap');
  if (overlap === 'allow') {
    return overlapSkips.map(({ _id }) => `8: ${_id} was skipped, although runs of ${name} may overlap`);
  }
  const ordered = jobs.toSorted((a, b) => startOf(a) - startOf(b));
  const overlaps = ordered.slice(1).flatMap((job, index) => {
    const before = ordered[index];
    const overlapMs = before === undefined ? 0 : (before.finishedAt?.getTime() ?? Infinity) - startOf(job);
    return overlapMs > CLOCK_ERROR_MS
      ? [`8: ${job._id} started ${overlapMs} ms before ${before?._id ?? ''} had ended`]
      : [];
  });
  const unjustified = overlapSkips.filter((skip) => !jobs.some((job) => wasActive(job, skip)));
  return [
    ...overlaps,
    ...unjustified.map(
      ({ _id, activeId, since }) =>
        `8: ${_id} was skipped at ${since.toISOString()} for ${activeId ?? 'a run without a name'}, when no run of ${name} was unfinished`,
    ),
  ];
}

/** The run was planned and not finished when the skip was recorded. */
function wasActive({ scheduledFor, endedAt }: Run, { since }: Skip): boolean {
  const wasPlanned = scheduledFor !== null && scheduledFor.getTime() <= since.getTime() + CLOCK_ERROR_MS;
  return wasPlanned && endedAt >= since.getTime() - CLOCK_ERROR_MS;
}

function startOf({ firstStartedAt, createdAt }: Run): number {
  return (firstStartedAt ?? createdAt).getTime();
}

function iso(instant: number): string {
  return Number.isNaN(instant) ? 'no time' : new Date(instant).toISOString();
}
