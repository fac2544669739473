import { CronExpressionParser } from 'cron-parser';
import { ChronosError, toError } from './errors.js';
import { cutText, jsonText } from './text.js';

export const CRON_FIELDS = ['second', 'minute', 'hour', 'day', 'month', 'weekday'] as const;

export type CronField = (typeof CRON_FIELDS)[number];

/** One field of an expression. */
export interface FieldValues {
  /** Sorted. Sunday is 0. */
  readonly values: readonly number[];
  /** Written `*`: it asks for nothing. */
  readonly any: boolean;
  /** Written `*`, with a step or without: it says how often rather than when. */
  readonly open: boolean;
  /** The last day of the month, besides `values`. */
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

/** What a field may consist of, before the parser sees it: that takes `H` for a random number and knows no bounds for steps. */
const FIELDS: Record<CronField, { atom: RegExp; most: number }> = {
  second: { atom: /^\d+$/, most: 59 },
  minute: { atom: /^\d+$/, most: 59 },
  hour: { atom: /^\d+$/, most: 23 },
  day: { atom: /^\d+$/, most: 31 },
  month: { atom: /^(\d+|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)$/i, most: 12 },
  weekday: { atom: /^(\d+|SUN|MON|TUE|WED|THU|FRI|SAT)$/i, most: 7 },
};

const PARSER_NAMES = {
  second: 'second',
  minute: 'minute',
  hour: 'hour',
  day: 'dayOfMonth',
  month: 'month',
  weekday: 'dayOfWeek',
} as const satisfies Record<CronField, string>;

/** Parsing takes a third of a millisecond, and a schedule is read at each of its occurrences. */
const parsed = new Map<string, CronFields>();
const MOST_PARSED = 1000;
/** In error messages, in bytes. */
const MOST_SHOWN = 200;
/** Every value of every field takes less. */
const MOST_CHARACTERS = 1000;

/** Five fields (from minutes) or six (from seconds), or a name like `@daily`. Throws INVALID_SCHEDULE. */
export function parseCron(expression: unknown): CronFields {
  if (typeof expression !== 'string') {
    throw invalid(jsonText(expression), `a cron expression is a text, got ${typeof expression}`);
  }
  if (expression.length > MOST_CHARACTERS) {
    throw invalid(expression, `it has ${expression.length} characters, expected at most ${MOST_CHARACTERS}`);
  }
  const fields = parsed.get(expression) ?? parse(expression);
  if (parsed.size >= MOST_PARSED) parsed.clear();
  parsed.set(expression, fields);
  return fields;
}

function parse(expression: string): CronFields {
  const text = expression.trim();
  if (text.startsWith('@') && !ALIASES.has(text.toLowerCase())) {
    throw invalid(expression, `it is none of ${[...ALIASES.keys()].join(', ')}`);
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

/** Without a field for seconds, whoever wants other seconds than 0 may still say so. */
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

/** One item of a list: `*`, a value, a range, each with a step or without, and `L` for the last day of the month. */
function itemFault(field: CronField, item: string): string | undefined {
  const { atom, most } = FIELDS[field];
  if (isLast(field, item)) return undefined;
  const [range = '', step, ...more] = item.split('/');
  const ends = range.split('-');
  const wellFormed =
    more.length === 0 && (range === '*' || (ends.length <= 2 && ends.every((end) => atom.test(end))));
  if (!wellFormed) return "is not a value, a range '1-5', a step '*/5' or a list of these";
  if (step !== undefined && !(/^\d+$/.test(step) && Number(step) >= 1 && Number(step) <= most)) {
    return `has the step '${step}', expected a number from 1 to ${most}`;
  }
  return undefined;
}

function isLast(field: CronField, item: string): boolean {
  return field === 'day' && item.toUpperCase() === 'L';
}

/** Each item is parsed on its own, so that a fault can be placed; the parser also refuses items that share a value. */
function numbersOf(expression: string, field: CronField, item: string): number[] {
  const alone = CRON_FIELDS.map((other) => (other === field ? item : '*')).join(' ');
  try {
    const values: readonly unknown[] = CronExpressionParser.parse(alone).fields[PARSER_NAMES[field]].values;
    return values.filter((value) => typeof value === 'number');
  } catch (error) {
    throw invalid(expression, `its ${field} '${item}' is refused: ${toError(error).message}`);
  }
}

function invalid(expression: string, why: string): ChronosError {
  const shown = cutText(expression, MOST_SHOWN);
  return new ChronosError('INVALID_SCHEDULE', `the cron expression '${shown}' is not valid: ${why}`);
}
