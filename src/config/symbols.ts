import { parseCron } from '../domain/cron.js';
import { ChronosError } from '../domain/errors.js';
import { parseFields, type FieldSchedule } from '../domain/field-schedule.js';

/** Rules by name: fields or cron expressions. */
export type Symbols = Readonly<Record<string, FieldSchedule | string>>;

/** Names for the usual rhythms, at times when not everybody else is at work. */
export const SYMBOLS: Readonly<Record<string, FieldSchedule>> = {
  EVERY_MINUTE: { minutes: '*' },
  EVERY_HOUR: { minutes: 1, hours: '*' },
  EVERY_DAY: { minutes: 10, hours: 2 },
  EVERY_WEEK: { minutes: 20, hours: 6, wday: 1 },
  EVERY_MONTH: { minutes: 30, hours: 1, mday: 1 },
};

/** Names in capitals, so that they are told from everything else. */
export function readSymbols(value: unknown): Symbols {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ChronosError('INVALID_OPTIONS', 'must be an object of rules by name');
  for (const [symbol, rule] of Object.entries(value)) {
    if (!/^[A-Z][A-Z0-9_]*$/.test(symbol)) {
      throw new ChronosError('INVALID_OPTIONS', `a name must be like EVERY_SHIFT, got '${symbol}'`);
    }
    if (typeof rule === 'string') parseCron(rule);
    else parseFields(rule);
  }
  return value as Symbols;
}
