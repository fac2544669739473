import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { type FieldSchedule, parseFields } from '../../../../src/domain/calendar/field-schedule.js';
import { assertInvalidSchedule, range, runs as runsOfRule } from '../../../support/rule-runs.js';

/** The values of the field that match the pattern. */
function matchingValues(name: keyof FieldSchedule, pattern: string | number): number[] {
  const all = {
    minutes: range(0, 59),
    hours: range(0, 23),
    mday: range(1, 31),
    day: range(1, 31),
    wday: range(0, 6),
    mon: range(1, 12),
    year: range(2020, 2040),
  }[name];
  return all.filter(parseFields({ [name]: pattern })[name].matches);
}

function runs(fields: FieldSchedule, from: string, count: number): string[] {
  return runsOfRule({ fields }, from, count);
}

function assertInvalid(input: unknown, ...messages: RegExp[]): void {
  assertInvalidSchedule(() => parseFields(input), ...messages);
}

describe('field schedules', () => {
  for (const [name, pattern, expected] of [
    ['minutes', 5, [5]],
    ['minutes', '5', [5]],
    ['minutes', ' 05 ', [5]],
    ['minutes', 0, [0]],
    ['minutes', '*', range(0, 59)],
    ['minutes', '*/15', [0, 15, 30, 45]],
    ['minutes', '*/7', [0, 7, 14, 21, 28, 35, 42, 49, 56]],
    ['minutes', '10-13', [10, 11, 12, 13]],
    ['minutes', '10 - 11', [10, 11]],
    ['minutes', '1,20, 40-42,*/30', [0, 1, 20, 30, 40, 41, 42]],
    ['minutes', '1,1', [1]],
    ['hours', '9-17', range(9, 17)],
    ['hours', '*/5', [0, 5, 10, 15, 20]],
    ['mday', '*/5', [5, 10, 15, 20, 25, 30]],
    ['mday', '*/2', range(1, 31).filter((day) => day % 2 === 0)],
    ['mday', 31, [31]],
    ['day', '*/10', [10, 20, 30]],
    ['mon', '*/5', [5, 10]],
    ['mon', '*/3', [3, 6, 9, 12]],
    ['wday', 0, [0]],
    ['wday', 7, [0]],
    ['wday', '5-7', [0, 5, 6]],
    ['wday', '1-5', [1, 2, 3, 4, 5]],
    ['wday', '*/2', [0, 2, 4, 6]],
    ['wday', '*/7', [0]],
    ['year', 2026, [2026]],
    ['year', '*/4', [2020, 2024, 2028, 2032, 2036, 2040]],
    ['year', '2026-2028,2030', [2026, 2027, 2028, 2030]],
  ] as const) {
    it(`have the right values for ${name}: ${inspect(pattern)} [Y4]`, () => {
      assert.deepEqual(matchingValues(name, pattern), expected);
    });
  }

  it('match multiples of a step, while cron counts steps from the first value [Y4]', () => {
    const from = '2026-01-01T12:00Z';
    assert.deepEqual(runs({ minutes: 0, hours: 0, mday: '*/5' }, from, 3), [
      '2026-01-05T00:00',
      '2026-01-10T00:00',
      '2026-01-15T00:00',
    ]);
    assert.deepEqual(runsOfRule({ cron: '0 0 */5 * *' }, from, 3), [
      '2026-01-06T00:00',
      '2026-01-11T00:00',
      '2026-01-16T00:00',
    ]);
  });

  it('match only if all fields match: a Friday the 13th [Y4]', () => {
    assert.deepEqual(runs({ minutes: 0, hours: 0, mday: 13, wday: 5 }, '2026-01-01T00:00Z', 4), [
      '2026-02-13T00:00',
      '2026-03-13T00:00',
      '2026-11-13T00:00',
      '2027-08-13T00:00',
    ]);
  });

  it('treat day like mday, and require both if both are set [Y4]', () => {
    const from = '2026-01-01T00:00Z';
    const twentieth = ['2026-01-20T00:00', '2026-02-20T00:00'];
    assert.deepEqual(runs({ minutes: 0, hours: 0, day: 20 }, from, 2), twentieth);
    assert.deepEqual(runs({ minutes: 0, hours: 0, mday: 20 }, from, 2), twentieth);
    assert.deepEqual(runs({ minutes: 0, hours: 0, mday: '10-20', day: '20-25' }, from, 2), twentieth);
  });

  it('match anything in a field that is missing [Y4]', () => {
    assert.deepEqual(runs({ hours: 2 }, '2026-01-01T02:58Z', 3), [
      '2026-01-01T02:59',
      '2026-01-02T02:00',
      '2026-01-02T02:01',
    ]);
    assert.deepEqual(runs({ minutes: 30 }, '2026-01-01T23:00Z', 2), ['2026-01-01T23:30', '2026-01-02T00:30']);
    assert.equal(parseFields({ minutes: 30, hours: undefined }).hours.matches(23), true);
  });

  it('run at the start of a minute [Y4]', () => {
    assert.deepEqual(runs({ year: 2026 }, '2026-05-05T05:05:05.005Z', 1), ['2026-05-05T05:06']);
  });

  it('end with their last year [Y4]', () => {
    assert.deepEqual(
      runs({ minutes: 0, hours: 0, mday: 1, mon: '*/6', year: '2026-2027' }, '2026-07-01T00:00Z', 9),
      ['2026-12-01T00:00', '2027-06-01T00:00', '2027-12-01T00:00'],
    );
    assert.deepEqual(runs({ year: 2025 }, '2026-01-01T00:00Z', 1), []);
  });

  it('can run monthly and on weekdays [Y4]', () => {
    assert.deepEqual(runs({ minutes: 30, hours: 1, mday: 1 }, '2026-01-15T00:00Z', 2), [
      '2026-02-01T01:30',
      '2026-03-01T01:30',
    ]);
    assert.deepEqual(runs({ minutes: 30, hours: 1, wday: '1-5' }, '2026-01-02T12:00Z', 2), [
      '2026-01-05T01:30',
      '2026-01-06T01:30',
    ]);
  });

  it('distinguish frequencies from fixed times [Y4]', () => {
    const open = (pattern: string | number): boolean => parseFields({ minutes: pattern }).minutes.open;
    assert.deepEqual(['*', '*/5', ' */5 '].map(open), [true, true, true]);
    assert.deepEqual([5, '5', '1-5', '1,2'].map(open), [false, false, false, false]);
    assert.equal(parseFields({ minutes: 5 }).hours.open, true);
  });

  const wrong: [keyof FieldSchedule, unknown[], RegExp][] = [
    ['minutes', [60, -1, '60', '0-60', '5-3', '*/0', '*/60', '*/', '**', '1-5/2', 'five'], /from 0 to 59/],
    ['minutes', ['', ' ', ',', '1,', '1,,2', '1;2', '1 2', '٣', '1.5', '1e1', '0x1', '+1'], /from 0 to 59/],
    [
      'minutes',
      [1.5, NaN, Infinity, 1e21, null, true, [], [5], {}, 5n, Symbol('5'), () => 5],
      /from 0 to 59/,
    ],
    ['hours', [24, '*/24', '0-24'], /from 0 to 23/],
    ['mday', [0, 32, '0-5', '*/32', 'L'], /from 1 to 31/],
    ['day', [0, 32], /from 1 to 31/],
    ['wday', [8, '*/8', 'MON'], /from 0 to 7/],
    ['mon', [0, 13, 'JAN', '*/13'], /from 1 to 12/],
    ['year', [26, 1969, 10_000, '2026-'], /from 1970 to 9999/],
  ];
  for (const [name, patterns, expected] of wrong) {
    for (const pattern of patterns) {
      it(`reject ${name}: ${inspect(pattern)} [Y4]`, () => {
        assertInvalid(
          { [name]: pattern },
          new RegExp(`invalid field schedule: ${name} must be a number `),
          expected,
        );
      });
    }
  }

  it('reject a cycle, which cannot be shown in the error [Y4]', () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    assertInvalid({ minutes: cycle }, /minutes must be/);
  });

  it('report all problems at once [Y4]', () => {
    assertInvalid(
      { minutes: 60, hours: 'noon', mday: 1, minuts: 5 },
      /minutes must be .* got 60/,
      /hours must be .* got "noon"/,
      /minuts is not a field \(did you mean 'minutes'\?\)/,
    );
  });

  it('reject unknown fields [Y4]', () => {
    for (const name of [
      'second',
      'seconds',
      'month',
      'weekday',
      'constructor',
      '__proto__',
      'toString',
      '',
    ]) {
      const input = Object.defineProperty({ minutes: 0 }, name, { value: 1, enumerable: true });
      assertInvalid(input, new RegExp(`${name} is not a field`));
    }
  });

  it('reject an empty object and values that are not objects [Y4]', () => {
    assertInvalid({}, /it needs one of minutes, hours, mday, day, wday, mon, year/);
    assertInvalid({ minutes: undefined }, /it needs one of minutes, hours/);
    for (const input of [undefined, null, 5, '* * * * *', [], [5], true, () => ({ minutes: 5 })]) {
      assertInvalid(input, /a field schedule must be an object like \{ minutes: 0, hours: 2 \}/);
    }
  });
});
