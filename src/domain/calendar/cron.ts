import { CronExpressionParser } from 'cron-parser';
import { ChronosError, toError } from '../errors.js';
import { truncateUtf8, jsonText } from '../text.js';

export const CRON_FIELDS = ['second', 'minute', 'hour', 'day', 'month', 'weekday'] as const;

export type CronField = (typeof CRON_FIELDS)[number];

export interface FieldValues {
  /** Sorted. Sunday is 0. */
  readonly values: readonly number[];
  /** Written `*`: matches everything. */
  readonly any: boolean;
  /** Starts with `*`: a frequency, not a fixed time. */
  readonly open: boolean;
  /** The last day of the month matches too. */
  readonly last: boolean;
}

export type CronFields = Readonly<Record<CronField, FieldValues>>;

const ALIASES = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

/** Checked before cron-parser sees a field: it reads `H` as a random number and accepts any step. */
const FIELDS: Record<CronField, { atom: RegExp; max: number }> = {
  second: { atom: /^\d+$/, max: 59 },
  minute: { atom: /^\d+$/, max: 59 },
  hour: { atom: /^\d+$/, max: 23 },
  day: { atom: /^\d+$/, max: 31 },
  month: { atom: /^(\d+|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)$/i, max: 12 },
  weekday: { atom: /^(\d+|SUN|MON|TUE|WED|THU|FRI|SAT)$/i, max: 7 },
};

const PARSER_NAMES = {
  second: 'second',
  minute: 'minute',
  hour: 'hour',
  day: 'dayOfMonth',
  month: 'month',
  weekday: 'dayOfWeek',
} as const satisfies Record<CronField, string>;

/** Parsing takes a third of a millisecond, and a rule is parsed at each of its occurrences. */
const cache = new Map<string, CronFields>();
const MAX_CACHED = 1000;
const MAX_SHOWN_BYTES = 200;
/** An expression that lists every value of every field is shorter. */
const MAX_CHARACTERS = 1000;

/** Five fields (minute first), six fields (second first), or an alias such as `@daily`. Throws INVALID_SCHEDULE. */
export function parseCron(expression: unknown): CronFields {
  if (typeof expression !== 'string') {
    throw invalid(jsonText(expression), `a cron expression must be a string, got ${typeof expression}`);
  }
  if (expression.length > MAX_CHARACTERS) {
    throw invalid(expression, `it has ${expression.length} characters, expected at most ${MAX_CHARACTERS}`);
  }
  const fields = cache.get(expression) ?? parse(expression);
  if (cache.size >= MAX_CACHED) cache.clear();
  cache.set(expression, fields);
  return fields;
}

function parse(expression: string): CronFields {
  const text = expression.trim();
  if (text.startsWith('@') && !ALIASES.has(text.toLowerCase())) {
    throw invalid(expression, `it is not one of ${[...ALIASES.keys()].join(', ')}`);
  }
  const parts = (ALIASES.get(text.toLowerCase()) ?? text).split(/\s+/).filter((part) => part !== '');
  if (parts.length !== 5 && parts.length !== 6) {
    throw invalid(
      expression,
      `it has ${parts.length} ${parts.length === 1 ? 'field' : 'fields'}, expected five (minute hour day month weekday) or six (second first)`,
    );
  }
  const six = parts.length === 6 ? parts : ['0', ...parts];
  const fields = CRON_FIELDS.map((field, index) => {
    return [field, parseField(expression, field, six[index] ?? '')] as const;
  });
  return Object.fromEntries(fields) as CronFields;
}

/** If it has none, a constraint may set other seconds than 0. */
export function hasSeconds(expression: string): boolean {
  return expression.trim().split(/\s+/).length === 6;
}

function parseField(expression: string, field: CronField, text: string): FieldValues {
  const any = text === '*' || (text === '?' && (field === 'day' || field === 'weekday'));
  const items = any ? ['*'] : text.split(',');
  const fault = items.map((item) => itemFault(field, item)).find((found) => found !== undefined);
  if (fault !== undefined) throw invalid(expression, `its ${field} '${text}' ${fault}`);
  const numbers = items
    .filter((item) => !isLast(field, item))
    .flatMap((item) => numbersOf(expression, field, item));
  return {
    values: [...new Set(numbers.map((value) => (field === 'weekday' ? value % 7 : value)))].sort(
      (a, b) => a - b,
    ),
    any,
    open: any || text.split(',').some((item) => item.startsWith('*')),
    last: items.some((item) => isLast(field, item)),
  };
}

/** An item is `*`, a value or a range, each with an optional step, or `L` for the last day of the month. */
function itemFault(field: CronField, item: string): string | undefined {
  const { atom, max } = FIELDS[field];
  if (isLast(field, item)) return undefined;
  const [range = '', step, ...more] = item.split('/');
  const ends = range.split('-');
  const wellFormed =
    more.length === 0 && (range === '*' || (ends.length <= 2 && ends.every((end) => atom.test(end))));
  if (!wellFormed) return "is not a value, a range '1-5', a step '*/5' or a list of these";
  if (step !== undefined && !(/^\d+$/.test(step) && Number(step) >= 1 && Number(step) <= max)) {
    return `has the step '${step}', expected a number from 1 to ${max}`;
  }
  return undefined;
}

function isLast(field: CronField, item: string): boolean {
  return field === 'day' && item.toUpperCase() === 'L';
}

/** Parses each item alone, so that errors name it. cron-parser also rejects lists with repeated values. */
function numbersOf(expression: string, field: CronField, item: string): number[] {
  const alone = CRON_FIELDS.map((other) => (other === field ? item : '*')).join(' ');
  try {
    const values: readonly unknown[] = CronExpressionParser.parse(alone).fields[PARSER_NAMES[field]].values;
    return values.filter((value) => typeof value === 'number');
  } catch (error) {
    throw invalid(expression, `its ${field} '${item}' is invalid: ${toError(error).message}`);
  }
}

function invalid(expression: string, why: string): ChronosError {
  const shown = truncateUtf8(expression, MAX_SHOWN_BYTES);
  return new ChronosError('INVALID_SCHEDULE', `the cron expression '${shown}' is not valid: ${why}`);
}
