import assert from 'node:assert/strict';
import {
  counted,
  instant,
  formatMoment,
  number,
  formatRelative,
  formatDuration,
} from '../../../../src/cli/terminal/format.js';

describe('format', () => {
  const now = new Date('2026-01-01T12:00:00.000Z');
  const at = (ms: number): Date => new Date(now.getTime() + ms);

  it('shows durations in the largest unit', () => {
    const spans = [0, 999, 1000, 59_400, 59_700, 300_000, 599_900, 3_598_000, 86_400_000 * 3];
    assert.deepEqual(spans.map(formatDuration), ['0ms', '999ms', '1s', '59s', '1m', '5m', '10m', '1h', '3d']);
    assert.equal(formatDuration(null), '–');
  });

  it('shows moments relative to now', () => {
    assert.equal(formatRelative(at(300_000), now), 'in 5m');
    assert.equal(formatRelative(at(-180_000), now), '3m ago');
    assert.equal(formatRelative(at(400), now), 'now');
    assert.equal(formatRelative(null, now), '–');
    assert.equal(instant(now), '2026-01-01 12:00:00Z');
    assert.equal(formatMoment(at(7_200_000), now), '2026-01-01 14:00:00Z (in 2h)');
  });

  it('shows numbers with separators', () => {
    assert.deepEqual([0, 1.26, 99.94, 123.4, 12_345].map(number), ['0', '1.3', '99.9', '123', '12,345']);
    assert.equal(counted({ count: 1, atLeast: false }, 'job'), '1 job');
    assert.equal(counted({ count: 10_000, atLeast: true }, 'job'), 'more than 10,000 jobs');
  });
});
