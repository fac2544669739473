import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import {
  isTimezone,
  zoneOffset,
  type ZoneSegment,
  zoneSegments,
} from '../../../../src/domain/calendar/time-zone.js';
import { wallAt } from '../../../support/calendar-oracle.js';
import { seededRandom } from '../../../support/seeded-random.js';

const HOUR = 3_600_000;
const ZONES = [
  'UTC',
  'Etc/GMT+12',
  'Europe/Berlin',
  'Europe/Dublin',
  'Africa/Casablanca',
  'America/New_York',
  'America/St_Johns',
  'America/Santiago',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Asia/Gaza',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Chatham',
  'Pacific/Kiritimati',
  'Antarctica/Troll',
];

/** The offset to UTC according to Intl. */
const intlOffset = (instant: number, zone: string): number => wallAt(instant, zone) - instant;

function segmentsUntil(from: number, to: number, zone: string): ZoneSegment[] {
  const segments: ZoneSegment[] = [];
  for (const segment of zoneSegments(from, zone)) {
    if (segment.start >= to) break;
    segments.push(segment);
  }
  return segments;
}

const changesOf = (segments: ZoneSegment[]): string[] =>
  segments
    .filter(({ offset, previousOffset }) => offset !== previousOffset)
    .map(
      ({ start, offset, previousOffset }) =>
        `${new Date(start).toISOString()} ${previousOffset / HOUR} → ${offset / HOUR}`,
    );

describe('time zones', () => {
  for (const zone of ZONES) {
    describe(zone, () => {
      const from = Date.parse('2010-01-01T00:00:00Z');
      const to = Date.parse('2040-01-01T00:00:00Z');
      const segments = (): ZoneSegment[] => segmentsUntil(from, to, zone);

      it('has consecutive segments without gaps [B10]', () => {
        const all = segments();
        assert.equal(all[0]?.start, from);
        assert.equal(all.at(-1)?.end, to);
        for (const [index, segment] of all.entries()) {
          assert.ok(segment.start < segment.end);
          if (index === 0) continue;
          assert.equal(segment.start, all[index - 1]!.end);
          assert.equal(segment.previousOffset, all[index - 1]!.offset);
        }
      });

      it('changes its offset in the same millisecond as Intl [B10]', () => {
        for (const { start, end, offset, previousOffset } of segments()) {
          assert.equal(intlOffset(start, zone), offset, `at ${new Date(start).toISOString()}`);
          assert.equal(
            intlOffset(start - 1, zone),
            previousOffset,
            `before ${new Date(start).toISOString()}`,
          );
          assert.equal(intlOffset(end - 1, zone), offset, `before ${new Date(end).toISOString()}`);
        }
      });

      it('has the same offset as Intl at random instants [B10]', () => {
        const random = seededRandom(7);
        for (let index = 0; index < 1500; index++) {
          const instant = Math.floor(from + random() * (to - from));
          const [segment] = zoneSegments(instant, zone);
          const at = new Date(instant).toISOString();
          assert.ok(segment!.start <= instant && instant < segment!.end, at);
          assert.equal(segment!.offset, intlOffset(instant, zone), at);
          assert.equal(zoneOffset(instant, zone), intlOffset(instant, zone), at);
        }
      });
    });
  }

  it('change their offset at known instants [B10]', () => {
    const year = [Date.parse('2026-01-01T00:00:00Z'), Date.parse('2027-01-01T00:00:00Z')] as const;
    assert.deepEqual(changesOf(segmentsUntil(...year, 'Europe/Berlin')), [
      '2026-03-29T01:00:00.000Z 1 → 2',
      '2026-10-25T01:00:00.000Z 2 → 1',
    ]);
    assert.deepEqual(changesOf(segmentsUntil(...year, 'America/New_York')), [
      '2026-03-08T07:00:00.000Z -5 → -4',
      '2026-11-01T06:00:00.000Z -4 → -5',
    ]);
    assert.deepEqual(changesOf(segmentsUntil(...year, 'Australia/Lord_Howe')), [
      '2026-04-04T15:00:00.000Z 11 → 10.5',
      '2026-10-03T15:30:00.000Z 10.5 → 11',
    ]);
    assert.deepEqual(changesOf(segmentsUntil(...year, 'America/Santiago')), [
      '2026-04-05T03:00:00.000Z -3 → -4',
      '2026-09-06T04:00:00.000Z -4 → -3',
    ]);
    assert.deepEqual(changesOf(segmentsUntil(...year, 'UTC')), []);
    const skipped = [Date.parse('2011-12-01T00:00:00Z'), Date.parse('2012-01-01T00:00:00Z')] as const;
    assert.deepEqual(changesOf(segmentsUntil(...skipped, 'Pacific/Apia')).slice(-1), [
      '2011-12-30T10:00:00.000Z -10 → 14',
    ]);
  });

  it('are cached up to a limit, although each name has thousands of spellings', () => {
    const spellings = Array.from({ length: 4000 }, (_, bits) =>
      Array.from('america/sao_paulo', (char, at) => ((bits >> at) & 1 ? char.toUpperCase() : char)).join(''),
    );
    const original = Intl.DateTimeFormat;
    let created = 0;
    Intl.DateTimeFormat = new Proxy(original, {
      construct: (target, args: ConstructorParameters<typeof Intl.DateTimeFormat>) => {
        created++;
        return new target(...args);
      },
    });
    try {
      for (const name of new Set(spellings)) assert.ok(isTimezone(name));
      assert.ok(isTimezone(spellings[0]));
    } finally {
      Intl.DateTimeFormat = original;
    }
    assert.equal(created, new Set(spellings).size + 1);
  });

  it('have the same offset for an instant, whatever is cached [B10]', () => {
    const instants = ['2031-10-26T00:59:59.999Z', '2031-10-26T01:00:00Z', '2031-01-01T00:00:00Z'].map(
      Date.parse,
    );
    const offsets = (): number[] => instants.map((instant) => zoneOffset(instant, 'Europe/Paris') / HOUR);
    assert.deepEqual(offsets(), [2, 1, 1]);
    zoneOffset(Date.parse('2030-06-01T00:00:00Z'), 'Europe/Paris');
    instants.reverse();
    assert.deepEqual(offsets(), [1, 1, 2]);
  });

  it('list segments from the one that contains the instant, also at its edges [B10]', () => {
    const change = Date.parse('2026-03-29T01:00:00Z');
    const startOf = (instant: number): number | undefined => {
      const [segment] = zoneSegments(instant, 'Europe/Berlin');
      return segment?.start;
    };
    assert.equal(startOf(change), change);
    assert.equal(startOf(change + 1), change);
    assert.equal(startOf(change - 1), Date.parse('2026-01-01T00:00:00Z'));
  });

  it('are valid by their IANA names [B10]', () => {
    for (const zone of [...ZONES, 'Europe/Kyiv', 'GMT', 'europe/berlin'])
      assert.equal(isTimezone(zone), true, zone);
  });

  for (const value of [
    '',
    ' ',
    'Berlin',
    'Europe/Atlantis',
    'UTC ',
    'Europe/Berlin\n',
    '../etc',
    null,
    undefined,
    5,
    {},
    ['UTC'],
  ]) {
    it(`are not valid as ${inspect(value)} [B10]`, () => assert.equal(isTimezone(value), false));
  }
});
