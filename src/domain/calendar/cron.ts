import { CronExpressionParser } from 'cron-parser';
import { ChronosError, toError } from '../errors.js';
import { jsonText, truncateUtf8 } from '../text.js';

export const CRON_FIELDS = ['second', 'minute', 'hour', 'day', 'month', 'weekday'] as const;

export type CronField = (typeof CRON_FIELDS)[number];

interface FieldValues {
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
const FIELDS = {
  second: { value: /^\d+$/, max: 59, parserName: 'second' },
  minute: { value: /^\d+$/, max: 59, parserName: 'minute' },
  hour: { value: /^\d+$/, max: 23, parserName: 'hour' },
  day: { value: /^\d+$/, max: 31, parserName: 'dayOfMonth' },
  month: { value: /^(\d+|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)$/i, max: 12, parserName: 'month' },
  weekday: { value: /^(\d+|SUN|MON|TUE|WED|THU|FRI|SAT)$/i, max: 7, parserName: 'dayOfWeek' },
} as const satisfies Record<CronField, { value: RegExp; max: number; parserName: string }>;

/** Parsing takes a third of a millisecond, and a rule is parsed for each occurrence. */
const cache = new Map<string, CronFields>();
const MAX_CACHED = 1000;
const MAX_SHOWN_BYTES = 200;
/** An expression that lists every value of every field is shorter than this. */
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
  const fields = CRON_FIELDS.map((field, index) => [field, parseField(expression, field, six[index] ?? '')]);
  return Object.fromEntries(fields) as CronFields;
}

/** Without a field for seconds, a constraint may set seconds other than 0. */
export function hasSeconds(expression: string): boolean {
  return expression.trim().split(/\s+/).length === 6;
}

function parseField(expression: string, field: CronField, text: string): FieldValues {
  const any = text === '*' || (text === '?' && (field === 'day' || field === 'weekday'));
  const items = any ? ['*'] : text.split(',');
  const error = items.map((item) => findItemError(field, item)).find((found) => found !== undefined);
  if (error !== undefined) throw invalid(expression, `its ${field} '${text}' ${error}`);
  const numbers = items
    .filter((item) => !isLast(field, item))
    .flatMap((item) => parseItem(expression, field, item))
    .map((value) => (field === 'weekday' ? value % 7 : value));
  return {
    values: [...new Set(numbers)].sort((a, b) => a - b),
    any,
    open: items.some((item) => item.startsWith('*')),
    last: items.some((item) => isLast(field, item)),
  };
}

/** An item is `*`, a value or a range, each with an optional step, or `L` for the last day of the month. */
function findItemError(field: CronField, item: string): string | undefined {
  if (isLast(field, item)) return undefined;
  const { value, max } = FIELDS[field];
  const [range = '', step, ...more] = item.split('/');
  const ends = range.split('-');
  const wellFormed =
    more.length === 0 && (range === '*' || (ends.length <= 2 && ends.every((end) => value.test(end))));
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
function parseItem(expression: string, field: CronField, item: string): number[] {
  const alone = CRON_FIELDS.map((other) => (other === field ? item : '*')).join(' ');
  try {
    const values: readonly unknown[] =
      CronExpressionParser.parse(alone).fields[FIELDS[field].parserName].values;
    return values.filter((value) => typeof value === 'number');
  } catch (error) {
    throw invalid(expression, `its ${field} '${item}' is invalid: ${toError(error).message}`);
  }
}

function invalid(expression: string, why: string): ChronosError {
  const shown = truncateUtf8(expression, MAX_SHOWN_BYTES);
  return new ChronosError('INVALID_SCHEDULE', `the cron expression '${shown}' is not valid: ${why}`);
}
