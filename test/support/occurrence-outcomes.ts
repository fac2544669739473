import assert from 'node:assert/strict';
import type { Rule } from '../../src/domain/calendar/rule.js';
import type { PendingSkip, SkipReason } from '../../src/domain/schedule/schedule.js';
import type { Collections } from '../../src/store/schema/collections.js';
import { instantsOf } from './calendar-oracle.js';

/** The outcome of an occurrence: it has a job, it is planned and waits for the current run, or the reason why it was skipped. */
export type OccurrenceOutcome = 'job' | 'waiting' | SkipReason;

interface RecordedOccurrences {
  /** The occurrences that have a job. */
  jobs: readonly Date[];
  /** The occurrences that are planned but have no job yet. */
  waiting?: readonly Date[];
  skips: readonly Pick<PendingSkip, 'at' | 'until' | 'count' | 'reason'>[];
}

/** The occurrences of a schedule after one instant and up to another. */
export interface Span {
  after: Date;
  until: Date;
  /** Default: the rule of the stored schedule. */
  rule?: Rule;
}

/**
 * Asserts that every occurrence of the calendar has exactly one outcome, and that there is no job or skip for another
 * time. The calendar comes from the oracle, which shares no code with src. Returns the outcomes in order.
 */
export function outcomesOf(
  calendar: readonly number[],
  { jobs, waiting = [], skips }: RecordedOccurrences,
): OccurrenceOutcome[] {
  const known = new Set(calendar);
  const found = new Map<number, OccurrenceOutcome[]>(calendar.map((at) => [at, []]));
  const add = (at: number, outcome: OccurrenceOutcome): void => {
    assert.ok(known.has(at), `${show(at)} is not an occurrence, but has the outcome ${outcome}`);
    found.get(at)?.push(outcome);
  };
  for (const at of jobs) add(at.getTime(), 'job');
  for (const at of waiting) add(at.getTime(), 'waiting');
  for (const { at, until, count, reason } of skips) {
    const covered = calendar.filter((instant) => instant >= at.getTime() && instant < until.getTime());
    if (count !== null) assert.equal(covered.length, count, `skips counted from ${show(at.getTime())}`);
    for (const instant of covered) add(instant, reason);
  }
  return [...found].map(([at, outcomes]) => {
    const [outcome] = outcomes;
    assert.ok(outcome !== undefined, `${show(at)} has no outcome`);
    assert.equal(outcomes.length, 1, `${show(at)} has several outcomes: ${outcomes.join(', ')}`);
    return outcome;
  });
}

/** The same for a stored schedule with its jobs and skips. Also checks that the id of each job is its occurrence. */
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

/** The number of occurrences with each outcome. */
export function countOutcomes(
  outcomes: readonly OccurrenceOutcome[],
): Partial<Record<OccurrenceOutcome, number>> {
  const counts: Partial<Record<OccurrenceOutcome, number>> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

function show(at: number): string {
  return new Date(at).toISOString();
}
