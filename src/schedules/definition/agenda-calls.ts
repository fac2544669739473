import { ChronosError } from '../../domain/errors.js';
import { isDateObject, isList, tryOr } from '../../domain/language.js';

// `define` and `schedule` exist in Agenda, too, with other arguments. Calls that are written for Agenda fail at once, with
// the call that does the same here. Only what cannot be meant for Chronos is recognized.

const BUILT_IN: readonly unknown[] = ['command', 'shell', 'url', 'event', 'closure'];

const UNITS = 'second|minute|hour|day|week|month|year';
const DAYS = '(?:mon|tues|wednes|thurs|fri|satur|sun)day';

/** `in 5 minutes`, `5 minutes from now`, `tomorrow at noon`, `next monday`, `2026-12-01T08:00`. */
const READS_LIKE_A_TIME = new RegExp(
  [
    `in (?:an?|\\d+) (?:${UNITS})s?`,
    `(?:an?|\\d+) (?:${UNITS})s?(?: from now)?`,
    `(?:today|tonight|tomorrow|${DAYS}|noon|midnight) at .+`,
    `tomorrow(?: (?:morning|noon|evening|night))?`,
    `next (?:week|month|year|${DAYS})`,
    `\\d{4}-\\d\\d-\\d\\d.*`,
  ]
    .map((pattern) => `^${pattern}$`)
    .join('|'),
  'i',
);

const SHORT_UNITS: Readonly<Record<string, string>> = {
  second: 's',
  minute: 'm',
  hour: 'h',
  day: 'd',
  week: 'w',
};

/** Agenda: `define(name, handler)`, `define(name, options, handler)`. */
export function assertNotAgendaDefine(args: readonly unknown[]): void {
  const [name, ...rest] = args;
  const hasFunction = rest.some((argument) => typeof argument === 'function');
  if (typeof name !== 'string' || BUILT_IN.includes(name) || !hasFunction) return;
  throw new ChronosError(
    'INVALID_ARGUMENT',
    `define('${name}', fn) is how Agenda registers a handler. In Chronos: scheduler.registerHandler('${name}', (payload, job) => …)`,
  );
}

/** Agenda: `schedule(when, name, data)`, where `name` may be a list. */
export function assertNotAgendaSchedule(when: unknown, name: unknown): void {
  const isDate = isDateObject(when);
  const isTime = isDate || (typeof when === 'string' && READS_LIKE_A_TIME.test(when.trim()));
  if (!isTime || (typeof name !== 'string' && !isList(name))) return;
  const taskType = typeof name === 'string' ? name : tryOr(() => String(name[0]), 'task');
  const [given, option] = isDate ? ['date', '{ at: date }'] : [`'${when}'`, toOption(when)];
  throw new ChronosError(
    'INVALID_ARGUMENT',
    `schedule(${given}, '${taskType}') is how Agenda runs a job later. In Chronos: scheduler.dispatch('${taskType}', payload, ${option})`,
  );
}

/** The same time as an option of `dispatch`. */
function toOption(when: string): string {
  const [, amount = '', unit = ''] = /^(?:in )?(an?|\d+) ([a-z]+?)s?(?: from now)?$/i.exec(when.trim()) ?? [];
  const short = SHORT_UNITS[unit.toLowerCase()];
  if (short === undefined) return '{ at: date }';
  return `{ delay: '${/^\d/.test(amount) ? amount : '1'}${short}' }`;
}
