import assert from 'node:assert/strict';
import fc from 'fast-check';
import { MIN_INTERVAL_MS, nextRuns, occurrencesOf } from '../../../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../../../src/domain/calendar/rule.js';
import { clockChanges, instantsOf } from '../../../support/calendar-oracle.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEARS = { from: Date.parse('2024-01-01T00:00:00Z'), to: Date.parse('2034-12-31T23:59:59Z') };
const FIVE_YEARS = 5 * 366 * DAY;
const MAX_COMPARED = 40;

const ZONES = [
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'America/Santiago',
  'UTC',
  'Asia/Kolkata',
  'Africa/Casablanca',
  'Pacific/Chatham',
  'Asia/Gaza',
  'Pacific/Apia',
];
const changes = new Map<string, number[]>();

/** Checks the same cases in every run; a failing case is shrunk and printed. */
function checkProperty<T>(arbitrary: fc.Arbitrary<T>, numRuns: number, check: (value: T) => void): void {
  fc.assert(fc.property(arbitrary, check), { seed: 20_260_329, numRuns, endOnFailure: false });
}

// ---- Expressions.

type Field = 'second' | 'minute' | 'hour' | 'day' | 'month' | 'weekday';

const BOUNDS: Record<Field, readonly [number, number]> = {
  second: [0, 59],
  minute: [0, 59],
  hour: [0, 23],
  day: [1, 31],
  month: [1, 12],
  weekday: [0, 7],
};

/** Hours at which clocks change are generated more often. */
function valueOf(field: Field): fc.Arbitrary<number> {
  const [min, max] = BOUNDS[field];
  const any = fc.integer({ min, max });
  return field === 'hour' ? fc.oneof(any, fc.constantFrom(0, 1, 2, 3, 23)) : any;
}

function rangeOf(field: Field): fc.Arbitrary<string> {
  return fc.tuple(valueOf(field), valueOf(field)).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
}

function stepOf(field: Field): fc.Arbitrary<number> {
  return fc.oneof(fc.integer({ min: 1, max: BOUNDS[field][1] }), fc.integer({ min: 2, max: 6 }));
}

function namesOf(field: Field): fc.Arbitrary<string>[] {
  if (field === 'month') return [fc.constantFrom('JAN', 'mar', 'Apr', 'SEP-nov', 'oct')];
  if (field === 'weekday') return [fc.constantFrom('SUN', 'mon', 'MON-FRI', 'Sat')];
  if (field === 'day') return [fc.constantFrom('L', 'l')];
  return [];
}

function itemOf(field: Field): fc.Arbitrary<string> {
  const from =
    field === 'weekday' ? [] : [fc.tuple(valueOf(field), stepOf(field)).map((pair) => pair.join('/'))];
  return fc.oneof(
    { weight: 4, arbitrary: valueOf(field).map(String) },
    { weight: 2, arbitrary: rangeOf(field) },
    { weight: 1, arbitrary: fc.tuple(rangeOf(field), stepOf(field)).map((pair) => pair.join('/')) },
    ...[...from, ...namesOf(field)].map((arbitrary) => ({ weight: 1, arbitrary })),
  );
}

function fieldOf(field: Field, stars: number): fc.Arbitrary<string> {
  const star = fc.oneof(
    fc.constant('*'),
    stepOf(field).map((step) => `*/${step}`),
  );
  const list = fc.array(itemOf(field), { minLength: 1, maxLength: 3 }).map((items) => items.join(','));
  const starFirst = fc.tuple(star, itemOf(field)).map((items) => items.join(','));
  return fc.oneof(
    { weight: stars, arbitrary: fc.constant('*') },
    { weight: 1, arbitrary: star },
    { weight: 4, arbitrary: list },
    { weight: 1, arbitrary: starFirst },
  );
}

const date = fc
  .tuple(fieldOf('day', 24), fieldOf('month', 48), fieldOf('weekday', 24))
  .map((fields) => fields.join(' '));
/** Hours at which clocks change are generated more often. */
const time = fc.oneof(
  fc.tuple(fieldOf('minute', 1), fieldOf('hour', 2)),
  fc.tuple(fieldOf('minute', 0), fc.constantFrom('0', '1', '2', '3', '0-3', '1,2', '23')),
);
const fiveFields = fc.tuple(time, date).map((fields) => fields.flat().join(' '));
const sixFields = fc.tuple(fieldOf('second', 1), fiveFields).map((fields) => fields.join(' '));

// ---- Rules.

const zone = fc.constantFrom(...ZONES);

/** Half of the starts are near a clock change. */
const place = fc.record({
  zone,
  nearChange: fc.boolean(),
  change: fc.nat(),
  distance: fc.oneof(
    fc.integer({ min: -30 * HOUR, max: 4 * HOUR }),
    fc.integer({ min: -2 * HOUR, max: 2 * HOUR }),
  ),
  anywhere: fc.integer({ min: YEARS.from, max: YEARS.to - 30 * DAY }),
});

const start = place.map(({ zone: timezone, nearChange, change, distance, anywhere }) => {
  const known = changes.get(timezone) ?? clockChanges(timezone, YEARS);
  changes.set(timezone, known);
  const isNear = nearChange && known.length > 0;
  return { timezone, from: new Date(isNear ? known[change % known.length]! + distance : anywhere) };
});

function someOf(field: Field, maxLength: number): fc.Arbitrary<number[]> {
  const value = field === 'weekday' ? fc.integer({ min: 0, max: 6 }) : valueOf(field);
  return fc.uniqueArray(value, { minLength: 1, maxLength });
}

const timesOnly = { second: someOf('second', 3), minute: someOf('minute', 20), hour: someOf('hour', 12) };
const datesOnly = { day: someOf('day', 20), month: someOf('month', 10), weekday: someOf('weekday', 5) };
const constraints = fc.oneof(
  fc.record(timesOnly, { requiredKeys: [] }),
  fc.record({ ...timesOnly, ...datesOnly }, { requiredKeys: [] }),
);

const clock = fc
  .tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
  .map((parts) => parts.map((part) => String(part).padStart(2, '0')).join(':'));
const between = fc.tuple(clock, clock);
const except = fc.array(
  fc.oneof(
    fc.integer({ min: YEARS.from, max: YEARS.to }).map((at) => new Date(at).toISOString().slice(0, 10)),
    fc.integer({ min: YEARS.from, max: YEARS.to }).map((at) => new Date(at).toISOString().slice(5, 10)),
  ),
  { maxLength: 3 },
);
const fieldNames = fc.subarray(['second', 'minute', 'hour', 'day', 'month', 'weekday'] as const);

function pattern(min: number, max: number): fc.Arbitrary<string | number> {
  const value = fc.integer({ min, max });
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const step = fc.integer({ min: 1, max: Math.min(max, 15) }).map((every) => `*/${every}`);
  return fc.oneof(
    value,
    fc.constant('*'),
    step,
    range,
    fc
      .array(fc.oneof(value.map(String), range), { minLength: 2, maxLength: 3 })
      .map((list) => list.join(',')),
  );
}

const timesOfFields = { minutes: pattern(0, 59), hours: fc.oneof(pattern(0, 23), pattern(0, 4)) };
const datesOfFields = {
  mday: pattern(1, 31),
  day: pattern(1, 31),
  wday: pattern(0, 7),
  mon: pattern(1, 12),
  year: pattern(2024, 2036),
};
const fieldSchedule = fc
  .oneof(
    fc.record(timesOfFields, { requiredKeys: [] }),
    fc.record({ ...timesOfFields, ...datesOfFields }, { requiredKeys: [] }),
  )
  .filter((fields) => Object.keys(fields).length > 0);

// ---- Comparison.

function iso(instants: Iterable<Date | number>): string[] {
  return Array.from(instants, (instant) => new Date(instant).toISOString());
}

/** Compares the occurrences in the `span` milliseconds after `from` with those of the oracle. */
function assertMatchesOracle(rule: Rule, from: Date, span: number, anchor = from): void {
  const to = from.getTime() + span;
  const all = instantsOf(rule, anchor, { from: from.getTime() + 1, to });
  const expected = all.slice(0, MAX_COMPARED);
  const occurrences = occurrencesOf(rule, anchor);
  const found = nextRuns(occurrences, expected.length, from);
  assert.deepEqual(iso(found), iso(expected));
  if (all.length > expected.length) return;
  const beyond = occurrences.next(found.at(-1) ?? from);
  assert.ok(beyond === null || beyond.getTime() > to, `unexpected run: ${beyond?.toISOString()}`);
}

describe('rules', () => {
  it('with five fields match the oracle [J1] [B10]', () => {
    checkProperty(fc.tuple(fiveFields, start), 1200, ([cron, { timezone, from }]) => {
      assertMatchesOracle({ cron, timezone }, from, 4 * DAY);
    });
  });

  it('with five fields match the oracle over two months [J1] [B10]', () => {
    checkProperty(fc.tuple(fiveFields, start), 150, ([cron, { timezone, from }]) => {
      assertMatchesOracle({ cron, timezone }, from, 60 * DAY);
    });
  });

  it('with six fields match the oracle [J1] [B10]', () => {
    checkProperty(fc.tuple(sixFields, start), 500, ([cron, { timezone, from }]) => {
      assertMatchesOracle({ cron, timezone }, from, 36 * HOUR);
    });
  });

  it('with constraints, between and except match the oracle [J3] [B10]', () => {
    const rules = fc.oneof(
      fc.record({ cron: fiveFields, constraints }),
      fc.record(
        { cron: fiveFields, constraints, overridable: fieldNames, between, except },
        { requiredKeys: ['cron'] },
      ),
    );
    checkProperty(fc.tuple(rules, start), 600, ([rule, { timezone, from }]) => {
      const span = rule.constraints?.second === undefined ? 10 * DAY : 2 * DAY;
      assertMatchesOracle({ ...rule, timezone }, from, span);
    });
  });

  it('with a field schedule match the oracle [Y4] [B10]', () => {
    const withoutSeconds = constraints.map(({ second: _, ...rest }) => rest);
    const rules = fc.oneof(
      fc.record({ fields: fieldSchedule }),
      fc.record(
        { fields: fieldSchedule, constraints: withoutSeconds, between, except },
        { requiredKeys: ['fields'] },
      ),
    );
    checkProperty(fc.tuple(rules, start), 500, ([rule, { timezone, from }]) => {
      assertMatchesOracle({ ...rule, timezone }, from, 20 * DAY);
    });
  });

  it('with an interval and constraints match the oracle [J3] [B10]', () => {
    const every = fc.oneof(
      fc.integer({ min: MIN_INTERVAL_MS, max: 5000 }),
      fc.integer({ min: 1, max: 200 }).map((minutes) => minutes * MINUTE),
      fc.integer({ min: 1000, max: 3 * DAY }),
    );
    const rules = fc.record({ every, constraints, between, except }, { requiredKeys: ['every'] });
    const anchors = fc.integer({ min: -40 * DAY, max: 2 * DAY });
    checkProperty(fc.tuple(rules, start, anchors), 500, ([rule, { timezone, from }, distance]) => {
      const span = Math.min(10 * DAY, rule.every * 3000);
      assertMatchesOracle({ ...rule, timezone }, from, span, new Date(from.getTime() + distance));
    });
  });

  it('with startsAt and endsAt match the oracle [J3] [B10]', () => {
    const rules = fc.oneof(
      fiveFields.map((cron) => ({ cron })),
      fc.integer({ min: MINUTE, max: DAY }).map((every) => ({ every })),
    );
    const hours = fc.tuple(fc.integer({ min: -48, max: 48 }), fc.integer({ min: -2, max: 72 }));
    checkProperty(fc.tuple(rules, start, hours), 500, ([base, { timezone, from }, [first, length]]) => {
      const startsAt = new Date(Math.floor(from.getTime() / HOUR) * HOUR + first * HOUR);
      const endsAt = new Date(startsAt.getTime() + length * HOUR);
      const rule: Rule = { ...base, timezone, startsAt, endsAt };
      assertMatchesOracle(rule, from, 6 * DAY);
      for (const at of nextRuns(occurrencesOf(rule, from), 5, from))
        assert.ok(at >= startsAt && at <= endsAt);
    });
  });

  it('have a next run within five years, or none [J20]', () => {
    const rare = fc
      .tuple(
        valueOf('minute'),
        valueOf('hour'),
        fieldOf('day', 1),
        fieldOf('month', 1),
        fieldOf('weekday', 8),
      )
      .map((fields) => fields.join(' '));
    const dates = fc.record({
      mday: pattern(1, 31),
      mon: pattern(1, 12),
      wday: pattern(0, 6),
      year: pattern(2024, 2045),
    });
    const rules = fc.oneof(
      rare.map((cron) => ({ cron })),
      fc
        .constantFrom('0 0 29 2 *', '30 2 31 */2 *', '0 0 30 2 *', '0 0 31 4,6,9,11 *')
        .map((cron) => ({ cron })),
      dates.map((fields) => ({ fields: { minutes: 30, hours: 2, ...fields } })),
    );
    const starts = fc.record({
      timezone: zone,
      from: fc.date({ min: new Date(YEARS.from), max: new Date('2029-12-01') }),
    });
    checkProperty(fc.tuple(rules, starts), 80, ([base, { timezone, from }]) => {
      const rule: Rule = { ...base, timezone };
      const found = occurrencesOf(rule, from).next(from);
      const period = { from: from.getTime() + 1, to: from.getTime() + FIVE_YEARS };
      assert.deepEqual(iso(found === null ? [] : [found]), iso(instantsOf(rule, from, period).slice(0, 1)));
    });
  });

  it('have the same next run from every instant before it [B10]', () => {
    const rules = fc.record(
      { cron: fc.oneof(fiveFields, sixFields), constraints, between },
      { requiredKeys: ['cron'] },
    );
    const intervals = fc.record(
      { every: fc.integer({ min: MIN_INTERVAL_MS, max: 2 * DAY }), between },
      { requiredKeys: ['every'] },
    );
    const all = fc.tuple(
      fc.oneof({ weight: 3, arbitrary: rules }, { weight: 1, arbitrary: intervals }),
      start,
    );
    checkProperty(fc.tuple(all, fc.nat(DAY)), 1000, ([[base, { timezone, from }], later]) => {
      const occurrences = occurrencesOf({ ...base, timezone }, from);
      const next = occurrences.next(from);
      if (next === null) return;
      assert.ok(next > from);
      const just = new Date(next.getTime() - 1);
      assert.deepEqual(occurrences.next(just), next, 'from just before it');
      const middle = new Date((from.getTime() + next.getTime()) / 2);
      assert.deepEqual(occurrences.next(middle), next, 'from half-way');
      const closer = new Date(Math.min(from.getTime() + later, just.getTime()));
      assert.deepEqual(occurrences.next(closer), next, 'from a random instant before it');
      const following = occurrences.next(next);
      assert.ok(following === null || following > next);
      assert.deepEqual(occurrencesOf({ ...base, timezone }, from).next(next), following, 'from a new object');
    });
  });
});
