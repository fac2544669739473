import type { BaseName, ConstraintName } from '../config/rule-options.js';
import type { ScheduleContext } from '../config/rule-readers.js';
import { readSchedule, type ScheduleOptions } from '../config/schedule-options.js';
import type { CronField } from '../domain/cron.js';
import { ChronosError } from '../domain/errors.js';
import { secondsOfDay } from '../domain/frequencies.js';
import type { Definition, Said } from './definition.js';

type TimesOfDay = readonly [from: string, to: string];

/** Gathers what is said on a builder: what is wrong by itself is refused at the call that says it, called `where`. */
export class Saying {
  readonly #said: Said;
  readonly #context: ScheduleContext;
  #definition: Definition | undefined;

  constructor(said: Said, context: ScheduleContext) {
    this.#said = said;
    this.#context = context;
  }

  /** What was said, complete; from now on it cannot be changed. */
  freeze(build: (said: Said) => Definition): Definition {
    this.#definition ??= build(this.#said);
    return this.#definition;
  }

  /** What was said so far, to be changed. */
  open(where: string): Said {
    if (this.#definition === undefined) return this.#said;
    throw new ChronosError(
      'SCHEDULE_FROZEN',
      `${where}: the definition '${this.#definition.name}' is in use and cannot be changed any more. Say everything before start(), a pass, or the first time it is read`,
    );
  }

  /** In place of what was said before about the same. */
  say(options: ScheduleOptions, where: string): void {
    const said = this.open(where);
    this.#check(options, where);
    said.options = { ...said.options, ...options };
  }

  /** The base, in place of any before it. `loose`: its fields that a constraint may replace. */
  sayBase(base: Pick<ScheduleOptions, BaseName>, where: string, loose: readonly CronField[] = []): void {
    const said = this.open(where);
    this.#check(base, where);
    const { cron: _c, fields: _f, symbol: _s, every: _e, ...rest } = said.options;
    said.options = { ...rest, ...base };
    said.loose = loose;
  }

  /** Besides the constraints before it: all of them must hold. */
  narrow(name: ConstraintName, values: number | readonly number[], where: string): void {
    const before = this.open(where).options[name];
    // As read: Sunday may have been said as 0 or as 7.
    const { [name]: read = [] } = this.#check({ [name]: values }, where);
    const both = before === undefined ? read : read.filter((value) => [before].flat().includes(value));
    if (both.length === 0) {
      throw new ChronosError(
        'INVALID_SCHEDULE',
        `${where} leaves nothing of what was said before: all constraints must hold at once. Give all values in one call`,
      );
    }
    this.say({ [name]: both }, where);
  }

  /** The same for times of the day. */
  narrowTimes(times: TimesOfDay, where: string): void {
    const { between } = this.open(where).options;
    this.#check({ between: times }, where);
    this.say({ between: between === undefined ? times : inBoth(between, times) }, where);
  }

  addAround(kind: keyof Said['around'], fn: unknown): void {
    const said = this.open(`${kind}()`);
    if (typeof fn !== 'function') {
      throw new ChronosError('INVALID_SCHEDULE', `${kind}() takes a function, got ${typeof fn}`);
    }
    (said.around[kind] as unknown[]).push(fn);
  }

  #check(options: ScheduleOptions, where: string): ReturnType<typeof readSchedule> {
    const [unsaid] = Object.entries(options).find(([, value]) => value === undefined) ?? [];
    if (unsaid !== undefined) {
      throw new ChronosError('INVALID_SCHEDULE', `${where}.${unsaid} needs a value, got undefined`);
    }
    return readSchedule(options, this.#context, where);
  }
}

/** The times of the day that lie in both windows, when that is one window. */
function inBoth(one: TimesOfDay, other: TimesOfDay): TimesOfDay {
  const isAfter = (a: string, b: string): boolean => (secondsOfDay(a) ?? 0) > (secondsOfDay(b) ?? 0);
  const passesMidnight = ([from, to]: TimesOfDay): boolean => isAfter(from, to);
  const both: TimesOfDay = [
    isAfter(one[0], other[0]) ? one[0] : other[0],
    isAfter(one[1], other[1]) ? other[1] : one[1],
  ];
  if (![one, other, both].some(passesMidnight)) return both;
  throw new ChronosError(
    'INVALID_SCHEDULE',
    `between() was said before, and what is left of both is not one stretch of the day: say it once`,
  );
}
