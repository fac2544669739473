import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { isTimezone } from '../../../src/domain/calendar/time-zone.js';
import { parseInstant } from '../../../src/domain/instant.js';

function read(text: string, zone = 'UTC'): string {
  return parseInstant(text, zone, 'startsAt').toISOString();
}

describe('instant', () => {
  it('copies a Date', () => {
    const source = new Date('2026-11-01T03:15:00Z');
    const copy = parseInstant(source, 'Europe/Berlin', 'startsAt');
    assert.deepEqual(copy, source);
    source.setTime(0);
    assert.equal(copy.toISOString(), '2026-11-01T03:15:00.000Z');
  });

  it('reads text with an offset as it is, whatever the time zone of the application', () => {
    for (const zone of ['UTC', 'America/New_York', 'Asia/Kolkata']) {
      assert.equal(read('2026-11-01T03:15:00Z', zone), '2026-11-01T03:15:00.000Z');
      assert.equal(read('2026-11-01T03:15:00.250+02:00', zone), '2026-11-01T01:15:00.250Z');
      assert.equal(read('2026-11-01 03:15-0500', zone), '2026-11-01T08:15:00.000Z');
    }
  });

  it('reads text without an offset in the time zone of the application', () => {
    assert.equal(read('2026-07-01 03:15', 'Europe/Berlin'), '2026-07-01T01:15:00.000Z');
    assert.equal(read('2026-01-01 03:15', 'Europe/Berlin'), '2026-01-01T02:15:00.000Z');
    assert.equal(read('2026-01-01T00:00', 'Asia/Kolkata'), '2025-12-31T18:30:00.000Z');
    assert.equal(read('2026-01-01', 'America/New_York'), '2026-01-01T05:00:00.000Z');
    assert.equal(read('2026-01-01 00:00:01.5', 'UTC'), '2026-01-01T00:00:01.500Z');
  });

  it('never uses the time zone of the host', () => {
    const script = `
      import { parseInstant } from ${JSON.stringify(new URL('../../../src/domain/instant.ts', import.meta.url).href)};
      for (const text of ['2026-07-01', '2026-07-01 03:15', '2026-03-29 02:30', '2026-07-01T03:15:30'])
        console.log(parseInstant(text, 'Europe/Berlin', 'startsAt').toISOString());`;
    const outputIn = (TZ: string): string =>
      execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], {
        env: { ...process.env, TZ },
        encoding: 'utf8',
      });
    const expected = ['06-30T22:00:00', '07-01T01:15:00', '03-29T01:30:00', '07-01T01:15:30'];
    assert.equal(outputIn('Pacific/Kiritimati'), expected.map((at) => `2026-${at}.000Z\n`).join(''));
  });

  describe('when Berlin changes its clocks', () => {
    it('moves a time in the spring gap past the change', () => {
      assert.equal(read('2026-03-29 01:59:59', 'Europe/Berlin'), '2026-03-29T00:59:59.000Z');
      assert.equal(read('2026-03-29 02:00', 'Europe/Berlin'), '2026-03-29T01:00:00.000Z');
      assert.equal(read('2026-03-29 02:30', 'Europe/Berlin'), '2026-03-29T01:30:00.000Z');
      assert.equal(read('2026-03-29 03:00', 'Europe/Berlin'), '2026-03-29T01:00:00.000Z');
    });

    it('uses the first of two equal times in autumn', () => {
      assert.equal(read('2026-10-25 01:59', 'Europe/Berlin'), '2026-10-24T23:59:00.000Z');
      assert.equal(read('2026-10-25 02:30', 'Europe/Berlin'), '2026-10-25T00:30:00.000Z');
      assert.equal(read('2026-10-25 03:00', 'Europe/Berlin'), '2026-10-25T02:00:00.000Z');
    });
  });

  it('supports leap years and years far ahead', () => {
    assert.equal(read('2028-02-29 12:00'), '2028-02-29T12:00:00.000Z');
    assert.equal(read('2125-12-31'), '2125-12-31T00:00:00.000Z');
  });

  for (const text of [
    '2026-02-29',
    '2026-02-31 10:00',
    '2026-02-31T10:00:00Z',
    '2026-04-31T10:00:00+02:00',
    '2026-13-01',
    '2026-00-10',
    '2026-01-01 24:01',
    '2026-01-01 10:60',
    '2026-01-01 10:00:60',
    '0099-01-01',
    '2026-01-01T10:00:00+99:99',
    'tomorrow',
    '1767225600000',
    '2026-01-01 10',
    '',
  ]) {
    it(`rejects '${text}'`, () => {
      assert.throws(() => read(text, 'Europe/Berlin'), {
        code: 'INVALID_ARGUMENT',
        message: `startsAt must be a Date or a text like '2026-11-01 03:15' or '2026-11-01T03:15:00Z', got '${text}'`,
      });
    });
  }

  it('rejects values that are neither a date nor text', () => {
    for (const value of [undefined, null, 0, 1_767_225_600_000, {}, [], new Date(NaN)]) {
      assert.throws(() => parseInstant(value, 'UTC', 'startsAt'), { code: 'INVALID_ARGUMENT' });
    }
  });

  it('recognizes valid time zones', () => {
    for (const zone of ['UTC', 'Europe/Berlin', 'Asia/Kolkata']) assert.equal(isTimezone(zone), true);
    for (const zone of ['', 'Berlin', 'Mars/Olympus', 1, null, {}]) assert.equal(isTimezone(zone), false);
  });
});
