import assert from 'node:assert/strict';
import { nextRuns, occurrencesOf } from '../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../src/domain/calendar/rule.js';
import { START } from './instants.js';

export type RuleWithoutZone = Omit<Rule, 'timezone'>;

/** The next runs of a rule, in UTC unless it has a time zone, such as `2026-01-01T09:30` or `2026-01-01T09:30:05`. */
export function runs(rule: RuleWithoutZone & { timezone?: string }, from: string, count: number): string[] {
  const occurrences = occurrencesOf({ timezone: 'UTC', ...rule }, START);
  return nextRuns(occurrences, count, new Date(from)).map((at) =>
    at.toISOString().replace(/(:00)?\.000Z$/, ''),
  );
}

/** All whole numbers from the first to the last. */
export function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

export function assertInvalidSchedule(parse: () => unknown, ...messages: RegExp[]): void {
  assert.throws(parse, (error: Error & { code?: string }) => {
    assert.equal(error.name, 'ChronosError');
    assert.equal(error.code, 'INVALID_SCHEDULE');
    for (const message of messages) assert.match(error.message, message);
    return true;
  });
}
