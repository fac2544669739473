import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { type CronField, hasSeconds, parseCron } from '../../../../src/domain/calendar/cron.js';
import { assertInvalidSchedule, range } from '../../../support/rule-runs.js';

const values = (expression: string, field: CronField): readonly number[] =>
  parseCron(expression)[field].values;

function assertInvalid(expression: unknown, ...messages: RegExp[]): void {
  assertInvalidSchedule(() => parseCron(expression), ...messages);
}

describe('cron expressions', () => {
  it('have five fields, starting with the minute [J1]', () => {
    assert.deepEqual(parseCron('1 2 3 4 5'), {
      second: { values: [0], any: false, open: false, last: false },
      minute: { values: [1], any: false, open: false, last: false },
      hour: { values: [2], any: false, open: false, last: false },
      day: { values: [3], any: false, open: false, last: false },
      month: { values: [4], any: false, open: false, last: false },
      weekday: { values: [5], any: false, open: false, last: false },
    });
  });

  it('have six fields, starting with the second [J1]', () => {
    const fields = parseCron('9 1 2 3 4 5');
    assert.deepEqual(
      Object.values(fields).map((field) => field.values),
      [[9], [1], [2], [3], [4], [5]],
    );
  });

  it('have seconds only if they have six fields [J1]', () => {
    for (const expression of ['0 0 * * *', ' 0 0 * * * ', '@daily', '*/5\t* * * *']) {
      assert.equal(hasSeconds(expression), false, expression);
    }
    for (const expression of ['0 0 0 * * *', '  0  0 0 * * *  ']) {
      assert.equal(hasSeconds(expression), true, expression);
    }
  });

  it('include every value of a field with a star [J1]', () => {
    const fields = parseCron('* * * * * *');
    assert.deepEqual(fields.second.values, range(0, 59));
    assert.deepEqual(fields.minute.values, range(0, 59));
    assert.deepEqual(fields.hour.values, range(0, 23));
    assert.deepEqual(fields.day.values, range(1, 31));
    assert.deepEqual(fields.month.values, range(1, 12));
    assert.deepEqual(fields.weekday.values, range(0, 6));
    for (const field of Object.values(fields)) assert.deepEqual([field.any, field.open], [true, true]);
  });

  for (const [expression, field, expected] of [
    ['5 * * * *', 'minute', [5]],
    ['05 * * * *', 'minute', [5]],
    ['50,5,20 * * * *', 'minute', [5, 20, 50]],
    ['10-14 * * * *', 'minute', [10, 11, 12, 13, 14]],
    ['7-7 * * * *', 'minute', [7]],
    ['*/15 * * * *', 'minute', [0, 15, 30, 45]],
    ['*/59 * * * *', 'minute', [0, 59]],
    ['*/1 * * * *', 'minute', range(0, 59)],
    ['5/20 * * * *', 'minute', [5, 25, 45]],
    ['10-30/7 * * * *', 'minute', [10, 17, 24]],
    ['10-30/10,5,40-42 * * * *', 'minute', [5, 10, 20, 30, 40, 41, 42]],
    ['1,1 * * * *', 'minute', [1]],
    ['1-5,3-7 * * * *', 'minute', [1, 2, 3, 4, 5, 6, 7]],
    ['*/30,0-5 * * * *', 'minute', [0, 1, 2, 3, 4, 5, 30]],
    ['*,5 * * * *', 'minute', range(0, 59)],
    ['*/20 * * * * *', 'second', [0, 20, 40]],
    ['0 8-18/2 * * *', 'hour', [8, 10, 12, 14, 16, 18]],
    ['0 23 * * *', 'hour', [23]],
    ['0 0 */10 * *', 'day', [1, 11, 21, 31]],
    ['0 0 29-31 * *', 'day', [29, 30, 31]],
    ['0 0 1 */3 *', 'month', [1, 4, 7, 10]],
    ['0 0 1 JAN,jul *', 'month', [1, 7]],
    ['0 0 1 Oct-DEC *', 'month', [10, 11, 12]],
    ['0 0 1 JAN-12/4 *', 'month', [1, 5, 9]],
    ['0 0 * * MON-FRI', 'weekday', [1, 2, 3, 4, 5]],
    ['0 0 * * sat,sun', 'weekday', [0, 6]],
    ['0 0 * * 0', 'weekday', [0]],
    ['0 0 * * 7', 'weekday', [0]],
    ['0 0 * * 0,7', 'weekday', [0]],
    ['0 0 * * 5-7', 'weekday', [0, 5, 6]],
    ['0 0 * * */2', 'weekday', [0, 2, 4, 6]],
    ['0 0 * * 1-7/2', 'weekday', [0, 1, 3, 5]],
  ] as const) {
    it(`have the right values for ${field} in '${expression}' [J1]`, () => {
      assert.deepEqual(values(expression, field), expected);
    });
  }

  it('accept the names of all months and days of the week [J1]', () => {
    const months = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
    for (const [index, name] of months.entries()) {
      assert.deepEqual(values(`0 0 1 ${name} *`, 'month'), [index + 1]);
      assert.deepEqual(values(`0 0 1 ${name.toLowerCase()} *`, 'month'), [index + 1]);
    }
    for (const [index, name] of ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'].entries()) {
      assert.deepEqual(values(`0 0 * * ${name}`, 'weekday'), [index]);
      assert.deepEqual(values(`0 0 * * ${name.toLowerCase()}`, 'weekday'), [index]);
    }
  });

  it('accept L for the last day of the month [J1]', () => {
    for (const [text, days] of [
      ['L', []],
      ['l', []],
      ['1,L', [1]],
      ['L,15-16', [15, 16]],
    ] as const) {
      const { day } = parseCron(`0 0 ${text} * *`);
      assert.deepEqual([day.values, day.last, day.any], [days, true, false], text);
    }
    assert.equal(parseCron('0 0 31 * *').day.last, false);
  });

  it('accept a question mark for any day [J1]', () => {
    for (const expression of ['0 0 ? * 1', '0 0 1 * ?', '0 0 ? * ?']) {
      const { day, weekday } = parseCron(expression);
      assert.equal(day.any, expression.includes('? *'));
      assert.equal(weekday.any, expression.endsWith('?'));
    }
    assert.deepEqual(values('0 0 ? * 1', 'day'), range(1, 31));
  });

  it('distinguish frequencies from fixed times [J1]', () => {
    const { minute, hour, day, weekday } = parseCron('*/5 8-18/2 */2 * *');
    assert.deepEqual([minute.open, minute.any], [true, false]);
    assert.deepEqual([hour.open, hour.any], [false, false]);
    assert.deepEqual([day.open, day.any], [true, false]);
    assert.deepEqual([weekday.open, weekday.any], [true, true]);
  });

  for (const [alias, expression] of [
    ['@yearly', '0 0 1 1 *'],
    ['@annually', '0 0 1 1 *'],
    ['@monthly', '0 0 1 * *'],
    ['@weekly', '0 0 * * 0'],
    ['@daily', '0 0 * * *'],
    ['@midnight', '0 0 * * *'],
    ['@hourly', '0 * * * *'],
  ] as const) {
    it(`accept ${alias} for ${expression} [J1]`, () => {
      assert.deepEqual(parseCron(alias), parseCron(expression));
      assert.deepEqual(parseCron(` ${alias.toUpperCase()} `), parseCron(expression));
    });
  }

  it('accept any white space between and around their fields [J1]', () => {
    assert.deepEqual(parseCron('  5\t4   3 \n 2 1  '), parseCron('5 4 3 2 1'));
  });

  it('accept a day that no month has, because the rule checks that [J1]', () => {
    assert.deepEqual(values('0 0 30 2 *', 'day'), [30]);
  });

  it('are parsed correctly when more are in use than are cached [J1]', () => {
    const expressions = Array.from({ length: 1500 }, (_, index) => `${index % 60} ${index % 24} * * *`);
    for (const [index, expression] of [...expressions, ...expressions].entries()) {
      assert.deepEqual(values(expression, 'minute'), [(index % 1500) % 60]);
    }
  });

  for (const [expression, ...messages] of [
    ['', /'' is not valid: it has 0 fields, expected five \(minute hour day month weekday\) or six/],
    ['   ', /it has 0 fields, expected five/],
    ['* * *', /'\* \* \*' is not valid: it has 3 fields, expected five .* or six/],
    ['* * * *', /it has 4 fields, expected five .* or six/],
    ['* * * * * * *', /it has 7 fields, expected five .* or six/],
    ['60 * * * *', /its minute '60' is invalid/, /expected range 0-59/],
    ['60 * * * * *', /its second '60' is invalid/, /expected range 0-59/],
    ['0 24 * * *', /its hour '24' is invalid/, /expected range 0-23/],
    ['0 0 0 * *', /its day '0' is invalid/, /expected range 1-31/],
    ['0 0 32 * *', /its day '32' is invalid/, /expected range 1-31/],
    ['0 0 * 0 *', /its month '0' is invalid/, /expected range 1-12/],
    ['0 0 * 13 *', /its month '13' is invalid/, /expected range 1-12/],
    ['0 0 * * 8', /its weekday '8' is invalid/, /expected range 0-7/],
    ['0 0 1 1 * 2025', /its weekday '2025' is invalid/, /expected range 0-7/],
    ['0-60 * * * *', /its minute '0-60' is invalid/, /expected range 0-59/],
    ['1,2,99 * * * *', /its minute '99' is invalid/, /expected range 0-59/],
    ['99999999999999999999 * * * *', /its minute '9+' is invalid/, /expected range 0-59/],
    ['*/0 * * * *', /its minute '\*\/0' has the step '0', expected a number from 1 to 59/],
    ['*/70 * * * *', /its minute '\*\/70' has the step '70', expected a number from 1 to 59/],
    ['*/ * * * *', /its minute '\*\/' has the step '', expected a number from 1 to 59/],
    ['*/-5 * * * *', /its minute '\*\/-5' has the step '-5', expected a number from 1 to 59/],
    ['*/1.5 * * * *', /its minute '\*\/1.5' has the step '1.5', expected/],
    ['*/1e1 * * * *', /its minute '\*\/1e1' has the step '1e1', expected/],
    ['0 */24 * * *', /its hour '\*\/24' has the step '24', expected a number from 1 to 23/],
    ['0 0 */32 * *', /its day '\*\/32' has the step '32', expected a number from 1 to 31/],
    ['0 0 * */13 *', /its month '\*\/13' has the step '13', expected a number from 1 to 12/],
    ['0 0 * * */8', /its weekday '\*\/8' has the step '8', expected a number from 1 to 7/],
    ['H * * * *', /its minute 'H' is not a value, a range '1-5', a step '\*\/5' or a list of these/],
    ['H/5 * * * *', /its minute 'H\/5' is not a value/],
    ['H(0-5) * * * *', /its minute 'H\(0-5\)' is not a value/],
    ['1,,2 * * * *', /its minute '1,,2' is not a value, a range .* or a list of these/],
    [',1 * * * *', /its minute ',1' is not a value/],
    ['1, * * * *', /its minute '1,' is not a value/],
    ['5-3 * * * *', /its minute '5-3' is invalid: Invalid range: 5-3/],
    ['0 0 * * FRI-MON', /its weekday 'FRI-MON' is invalid: Invalid range/],
    ['5- * * * *', /its minute '5-' is not a value/],
    ['-5 * * * *', /its minute '-5' is not a value/],
    ['1-2-3 * * * *', /its minute '1-2-3' is not a value/],
    ['*-5 * * * *', /its minute '\*-5' is not a value/],
    ['*/5/5 * * * *', /its minute '\*\/5\/5' is not a value/],
    ['** * * * *', /its minute '\*\*' is not a value/],
    ['1.5 * * * *', /its minute '1.5' is not a value/],
    ['0x5 * * * *', /its minute '0x5' is not a value/],
    ['+5 * * * *', /its minute '\+5' is not a value/],
    ['MON * * * *', /its minute 'MON' is not a value/],
    ['0 0 MON * *', /its day 'MON' is not a value/],
    ['0 0 * MON *', /its month 'MON' is not a value/],
    ['0 0 * * JAN', /its weekday 'JAN' is not a value/],
    ['0 0 * * MONDAY', /its weekday 'MONDAY' is not a value/],
    ['0 0 L-1 * *', /its day 'L-1' is not a value/],
    ['0 0 L/2 * *', /its day 'L\/2' is not a value/],
    ['0 0 LW * *', /its day 'LW' is not a value/],
    ['0 0 15W * *', /its day '15W' is not a value/],
    ['0 L * * *', /its hour 'L' is not a value/],
    ['0 0 * * L', /its weekday 'L' is not a value/],
    ['0 0 * * 5L', /its weekday '5L' is not a value/],
    ['0 0 * * 5#2', /its weekday '5#2' is not a value/],
    ['? * * * *', /its minute '\?' is not a value/],
    ['0 0 1,? * *', /its day '1,\?' is not a value/],
    ['0 0 ?/2 * *', /its day '\?\/2' is not a value/],
    ['@reboot', /'@reboot' is not valid: it is not one of @yearly, .*@hourly/],
    ['@', /it is not one of @yearly/],
    ['@daily 5', /it is not one of @yearly/],
    ['every day', /it has 2 fields, expected five/],
    ['constructor', /it has 1 field, expected five/],
    ['٣ * * * *', /its minute '٣' is not a value/],
    ['５ * * * *', /its minute '５' is not a value/],
    ['² * * * *', /its minute '²' is not a value/],
    ['1–5 * * * *', /its minute '1–5' is not a value/],
    ['0 0 * * ſun', /its weekday 'ſun' is not a value/],
    ['0\u200b0 * * * *', /its minute '0\u200b0' is not a value/],
    ['\u0000 * * * *', /its minute '.' is not a value/s],
  ] as [string, ...RegExp[]][]) {
    it(`reject ${inspect(expression)} [D5]`, () => assertInvalid(expression, ...messages));
  }

  const unprintable = Object.assign(Object.create(null) as object, {
    toJSON() {
      throw new Error('no');
    },
  });
  for (const value of [
    undefined,
    null,
    5,
    10n,
    NaN,
    true,
    {},
    [],
    ['* * * * *'],
    new Date(0),
    Symbol('x'),
    unprintable,
  ]) {
    it(`reject ${inspect(value)}: they must be strings [D5]`, () => {
      assertInvalid(value, new RegExp(`a cron expression must be a string, got ${typeof value}`));
    });
  }

  it('reject objects that convert to a string [D5]', () => {
    assertInvalid(new String('* * * * *'), /a cron expression must be a string, got object/);
    assertInvalid({ toString: () => '* * * * *' }, /a cron expression must be a string, got object/);
  });

  it('are rejected if they are very long, without being parsed or repeated in the error [D5]', () => {
    for (const text of [
      ' '.repeat(1_000_000),
      '* '.repeat(500_000),
      `${'1,'.repeat(500_000)}1 * * * *`,
      `${'1-'.repeat(500_000)}1 * * * *`,
      `${'0'.repeat(1_000_000)} * * * *`,
      `*/${'9'.repeat(1_000_000)} * * * *`,
      `@${'a'.repeat(1_000_000)}`,
    ]) {
      assertInvalid(text, /it has \d+ characters, expected at most 1000/, /^.{1,400}$/s);
    }
  });

  it('can list all values of all fields [D5]', () => {
    const all = [range(0, 59), range(0, 59), range(0, 23), range(1, 31), range(1, 12), range(0, 6)];
    const expression = all.map((list) => list.join(',')).join(' ');
    assert.deepEqual(
      Object.values(parseCron(expression)).map((field) => field.values),
      all,
    );
  });
});
