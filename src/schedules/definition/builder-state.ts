import { type HandlerRetryOptions, handlerRetryShape } from '../../config/handler-options.js';
import type { BaseName, ConstraintName, ScheduleContext } from '../../config/rule-options.js';
import { parseSchedule, type ScheduleOptions } from '../../config/schedule-options.js';
import type { CronField } from '../../domain/calendar/cron.js';
import { secondsOfDay } from '../../domain/calendar/frequencies.js';
import { ChronosError } from '../../domain/errors.js';
import { parse } from '../../domain/validation.js';
import type { Definition, DefinitionInput } from './definition.js';
import type { HandlerSource } from './handler-source.js';

type TimesOfDay = readonly [from: string, to: string];

/** Mutable builder state; each setter validates its own input. `where` is the method that error messages name. */
export class BuilderState {
  readonly #input: DefinitionInput;
  readonly #context: ScheduleContext;
  #definition: Definition | undefined;

  constructor(task: HandlerSource, payload: unknown, context: ScheduleContext) {
    this.#context = context;
    this.#input = {
      name: undefined,
      task,
      payload,
      options: {},
      overridable: [],
      singleInstance: false,
      lease: undefined,
      handlerRetries: undefined,
      dependsOn: [],
      hooks: { when: [], skip: [], before: [], onSuccess: [], onError: [], after: [] },
    };
  }

  freeze(build: (input: DefinitionInput) => Definition): Definition {
    this.#definition ??= build(this.#input);
    return this.#definition;
  }

  /** The input, for a change. Throws SCHEDULE_FROZEN after `freeze()`. */
  mutable(where: string): DefinitionInput {
    if (this.#definition === undefined) return this.#input;
    throw new ChronosError(
      'SCHEDULE_FROZEN',
      `${where}: the definition '${this.#definition.name}' is in use and can no longer be changed. Configure it before start(), before a pass, and before it is read`,
    );
  }

  set(options: ScheduleOptions, where: string): void {
    const input = this.mutable(where);
    this.#check(options, where);
    input.options = { ...input.options, ...options };
  }

  /** Replaces the base: the last frequency wins. `overridable`: fields of its cron expression that a constraint may replace. */
  setBase(
    base: Pick<ScheduleOptions, BaseName>,
    where: string,
    overridable: readonly CronField[] = [],
  ): void {
    const input = this.mutable(where);
    this.#check(base, where);
    const { cron: _c, fields: _f, symbol: _s, every: _e, ...rest } = input.options;
    input.options = { ...rest, ...base };
    input.overridable = overridable;
  }

  /** Adds to the earlier constraints: all of them must hold. */
  addConstraint(name: ConstraintName, values: number | readonly number[], where: string): void {
    const before = this.mutable(where).options[name];
    // Compare parsed values: Sunday may be passed as 0 or as 7.
    const { [name]: added = [] } = this.#check({ [name]: values }, where);
    const both = before === undefined ? added : added.filter((value) => [before].flat().includes(value));
    if (both.length === 0) {
      throw new ChronosError(
        'INVALID_SCHEDULE',
        `${where} and an earlier constraint have no value in common: all constraints must hold. Pass all values in one call`,
      );
    }
    this.set({ [name]: both }, where);
  }

  addTimeWindow(times: TimesOfDay, where: string): void {
    const { between } = this.mutable(where).options;
    this.#check({ between: times }, where);
    this.set({ between: between === undefined ? times : intersection(between, times) }, where);
  }

  /** Adds to the earlier settings. The functions are left out of the options that are stored with each job. */
  setRetries(retries: HandlerRetryOptions, where: string): void {
    const input = this.mutable(where);
    parse(handlerRetryShape, retries, where, 'INVALID_SCHEDULE');
    const { delay: _delay, if: _if, ...policy } = retries;
    this.set({ retries: { ...input.options.retries, ...policy } }, where);
    input.handlerRetries = { ...input.handlerRetries, ...retries };
  }

  addHook(kind: keyof DefinitionInput['hooks'], fn: unknown): void {
    const input = this.mutable(`${kind}()`);
    if (typeof fn !== 'function') {
      throw new ChronosError('INVALID_SCHEDULE', `${kind}() takes a function, got ${typeof fn}`);
    }
    (input.hooks[kind] as unknown[]).push(fn);
  }

  #check(options: ScheduleOptions, where: string): ReturnType<typeof parseSchedule> {
    const [missing] = Object.entries(options).find(([, value]) => value === undefined) ?? [];
    if (missing !== undefined) {
      throw new ChronosError('INVALID_SCHEDULE', `${where}.${missing} needs a value, got undefined`);
    }
    return parseSchedule(options, this.#context, where);
  }
}

/** The part of the day that is in both windows. Throws if it could be two parts, or none. */
function intersection(one: TimesOfDay, other: TimesOfDay): TimesOfDay {
  const isAfter = (a: string, b: string): boolean => (secondsOfDay(a) ?? 0) > (secondsOfDay(b) ?? 0);
  const passesMidnight = ([from, to]: TimesOfDay): boolean => isAfter(from, to);
  const both: TimesOfDay = [
    isAfter(one[0], other[0]) ? one[0] : other[0],
    isAfter(one[1], other[1]) ? other[1] : one[1],
  ];
  if (![one, other, both].some(passesMidnight)) return both;
  throw new ChronosError(
    'INVALID_SCHEDULE',
    'between(): this window and that of an earlier call do not have a single window in common: call between() once',
  );
}
