import assert from 'node:assert/strict';
import type { Rule } from '../../src/domain/calendar/rule.js';
import type { PendingSkip, SkipReason } from '../../src/domain/schedule/schedule.js';
import type { Collections } from '../../src/store/schema/collections.js';
import { instantsOf } from './calendar-oracle.js';

/** What became of an occurrence: a job, one that waits in line to become a job, or the reason it was skipped for. */
export type OccurrenceOutcome = 'job' | 'waiting' | SkipReason;

export interface RecordedOccurrences {
  /** The occurrences that have a job. */
  jobs: readonly Date[];
  /** Those that are decided and wait for their turn. */
  waiting?: readonly Date[];
  skips: readonly Pick<PendingSkip, 'at' | 'until' | 'count' | 'reason'>[];
}

/** The occurrences of a schedule after one instant and up to another. */
export interface Span {
  after: Date;
  until: Date;
  /** Default: the stored one, which may have changed since. */
  rule?: Rule;
}

/**
 * Jobs and recorded skips together are the calendar: each occurrence has exactly one fate, and nothing was made or
 * skipped besides. The calendar comes from the oracle, which shares no code with what is tested. Returns the fates in
 * order.
 */
export function outcomesOf(
  calendar: readonly number[],
  { jobs, waiting = [], skips }: RecordedOccurrences,
): OccurrenceOutcome[] {
  const known = new Set(calendar);
  const found = new Map<number, OccurrenceOutcome[]>(calendar.map((at) => [at, []]));
  const give = (at: number, fate: OccurrenceOutcome): void => {
    assert.ok(known.has(at), `${show(at)} is no occurrence, but has a ${fate}`);
    found.get(at)?.push(fate);
  };
  for (const at of jobs) give(at.getTime(), 'job');
  for (const at of waiting) give(at.getTime(), 'waiting');
  for (const { at, until, count, reason } of skips) {
    const covered = calendar.filter((instant) => instant >= at.getTime() && instant < until.getTime());
    if (count !== null) assert.equal(covered.length, count, `skips counted from ${show(at.getTime())}`);
    for (const instant of covered) give(instant, reason);
  }
  return [...found].map(([at, given]) => {
    const [fate] = given;
    assert.ok(fate !== undefined, `nobody accounts for ${show(at)}`);
    assert.equal(given.length, 1, `${show(at)} is accounted for more than once: ${given.join(', ')}`);
    return fate;
  });
}

/** The same for a schedule as it is in the database, with what only jobs can tell: their ids and their times. */
export async function loadOutcomes(
  c: Collections,
  scheduleId: string,
  span: Span,
): Promise<OccurrenceOutcome[]> {
  const schedule = await c.schedules.findOne({ _id: scheduleId });
  assert.ok(schedule !== null, `there is no schedule '${scheduleId}'`);
  const rule = span.rule ?? schedule.rule;
  assert.ok(rule !== null, `'${scheduleId}' has no rule`);
  const calendar = instantsOf(rule, schedule.anchor, {
    from: span.after.getTime() + 1,
    to: span.until.getTime(),
  });
  const jobs = await c.jobs.find({ schedule: scheduleId, _id: /@/ }).toArray();
  for (const { _id, scheduledFor } of jobs)
    assert.equal(_id, `${scheduleId}@${scheduledFor?.toISOString() ?? 'no time'}`);
  const made = new Set(jobs.map(({ _id }) => _id));
  return outcomesOf(calendar, {
    jobs: jobs.flatMap(({ scheduledFor }) => scheduledFor ?? []),
    waiting: schedule.pending.filter(({ kind, id }) => kind === 'run' && !made.has(id)).map(({ at }) => at),
    skips: await c.skips.find({ scheduleId }).toArray(),
  });
}

/** How many of each, for long periods. */
export function countOutcomes(
  given: readonly OccurrenceOutcome[],
): Partial<Record<OccurrenceOutcome, number>> {
  const counts: Partial<Record<OccurrenceOutcome, number>> = {};
  for (const fate of given) counts[fate] = (counts[fate] ?? 0) + 1;
  return counts;
}

function show(at: number): string {
  return new Date(at).toISOString();
}
