import {
  type ErrorHook,
  type Filter,
  type HandlerRetryOptions,
  type Hook,
  leaseShape,
  MAX_ATTEMPTS,
  type SuccessHook,
} from '../../config/handler-options.js';
import type { BaseName, ConstraintName } from '../../config/rule-options.js';
import type { MisfireOptions, ScheduleOptions } from '../../config/schedule-options.js';
import type { FieldSchedule } from '../../domain/calendar/field-schedule.js';
import {
  FREQUENCIES,
  type FrequencyName,
  overridableCron,
  WEEKDAYS,
} from '../../domain/calendar/frequencies.js';
import { nextRuns, occurrencesOf } from '../../domain/calendar/occurrences.js';
import type { Duration } from '../../domain/duration.js';
import { ChronosError } from '../../domain/errors.js';
import { type Instant, parseInstant } from '../../domain/instant.js';
import { isList } from '../../domain/language.js';
import type { Misfire, Overlap } from '../../domain/schedule/schedule.js';
import { copyOptions, integer, parse, readable } from '../../domain/validation.js';
import { bindDraft, type BoundDraft, type DispatchFunction, Draft } from '../../jobs/draft.js';
import type { JobHandle } from '../../jobs/job-handle.js';
import type { AnyPayloads } from '../../jobs/task-types.js';
import { BuilderState } from './builder-state.js';
import type { DefinitionRegistry } from './definition-registry.js';
import { assertScheduleName, type Definition, type DefinitionInput } from './definition.js';
import { type HandlerSource, sourceForDefine, sourceForSchedule } from './handler-source.js';

/** `scheduler.schedule(name, handler)`. */
export function defineSchedule<A>(
  definitions: DefinitionRegistry,
  dispatch: DispatchFunction,
  name: string,
  handler: unknown,
): ScheduleBuilder<A> {
  assertScheduleName(name, 'schedule()');
  return new ScheduleBuilder<A>(definitions, dispatch, sourceForSchedule(name, handler), null).named(name);
}

/** `scheduler.define(handler, payload)`. It can be named later. */
export function defineTask<A>(
  definitions: DefinitionRegistry,
  dispatch: DispatchFunction,
  handler: unknown,
  payload?: unknown,
): ScheduleBuilder<A> {
  const source = sourceForDefine(handler, payload);
  const builder = new ScheduleBuilder<A>(definitions, dispatch, source.task, source.payload);
  definitions.add(builder);
  return builder;
}

/** `daily()`, `everyFiveMinutes()` and so on. */
export type FrequencyMethods<B> = {
  [K in FrequencyName]: (...args: Parameters<(typeof FREQUENCIES)[K]['cron']>) => B;
};

/** `mondays()`, `weekdays()` and so on. */
export type WeekdayMethods<B> = { [K in keyof typeof WEEKDAYS]: () => B };

// The static block of the class adds these methods to the prototype.
export interface ScheduleBuilder<A>
  extends FrequencyMethods<ScheduleBuilder<A>>, WeekdayMethods<ScheduleBuilder<A>> {}

/**
 * Defines when and how a handler runs. The last frequency is the base; constraints narrow it, in any order, and all of
 * them must hold. A definition is frozen when the scheduler starts, when a pass runs, and when it is first read.
 */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging
export class ScheduleBuilder<A> {
  readonly #definitions: DefinitionRegistry;
  readonly #dispatch: DispatchFunction;
  readonly #state: BuilderState;

  constructor(
    definitions: DefinitionRegistry,
    dispatch: DispatchFunction,
    task: HandlerSource,
    payload: unknown,
  ) {
    this.#definitions = definitions;
    this.#dispatch = dispatch;
    this.#state = new BuilderState(task, payload, definitions.context);
  }

  /** Completes the definition. It cannot be changed afterwards. */
  freeze(): Definition {
    return this.#state.freeze((input) => this.#definitions.build(input, this));
  }

  named(name: string): this {
    const input = this.#state.mutable('named()');
    assertScheduleName(name, 'named()');
    this.#definitions.setName(this, name);
    input.name = name;
    return this;
  }

  /** The payload of its jobs. A dispatch may pass a different one. */
  args(payload: A): this {
    this.#state.mutable('args()').payload = payload;
    return this;
  }

  /** Five or six fields, names (`MON`, `JAN`), or an alias such as `@daily`. */
  cron(expression: string): this {
    return this.#base('cron', expression);
  }

  /** Field by field; all fields must match. */
  fields(fields: FieldSchedule): this {
    return this.#base('fields', fields);
  }

  /** A named rule: `EVERY_HOUR`, or one of the Scheduler's `symbols`. */
  symbol(symbol: string): this {
    return this.#base('symbol', symbol);
  }

  /** An interval in real time, from `startsAt` or from when the schedule was first stored. */
  every(interval: Duration): this {
    return this.#base('every', interval);
  }

  seconds(values: number | readonly number[]): this {
    return this.#constrain('seconds', values);
  }

  minutes(values: number | readonly number[]): this {
    return this.#constrain('minutes', values);
  }

  hours(values: number | readonly number[]): this {
    return this.#constrain('hours', values);
  }

  /** Days of the month. */
  days(values: number | readonly number[]): this {
    return this.#constrain('days', values);
  }

  months(values: number | readonly number[]): this {
    return this.#constrain('months', values);
  }

  /** 0 is Sunday. */
  daysOfWeek(values: number | readonly number[]): this {
    return this.#constrain('weekdays', values, 'daysOfWeek()');
  }

  /** Times of the day, both included; may pass midnight. */
  between(from: string, to: string): this {
    this.#state.addTimeWindow([from, to], 'between()');
    return this;
  }

  /** Days without a run: `'2026-12-24'`, or `'12-25'` for every year. Repeated calls add days. */
  except(...dates: (string | readonly string[])[]): this {
    const { except = [] } = this.#state.mutable('except()').options;
    return this.#set('except', [...except, ...flatten(dates, 'except()')]);
  }

  timezone(timezone: string): this {
    return this.#set('timezone', timezone);
  }

  startsAt(startsAt: Instant): this {
    return this.#set('startsAt', startsAt);
  }

  endsAt(endsAt: Instant): this {
    return this.#set('endsAt', endsAt);
  }

  maxRuns(maxRuns: number): this {
    return this.#set('maxRuns', maxRuns);
  }

  /** Delays each run by a random time up to this. */
  jitter(jitter: Duration): this {
    return this.#set('jitter', jitter);
  }

  /** The queue of its jobs. Without a queue, a pass runs them inline. */
  queue(queue: string): this {
    return this.#set('queue', queue);
  }

  priority(priority: number): this {
    return this.#set('priority', priority);
  }

  /** Adds to earlier calls. The functions `delay` and `if` are part of the code: they are not stored with its jobs. */
  retries(retries: HandlerRetryOptions): this {
    this.#state.setRetries(retries, 'retries()');
    return this;
  }

  /** How many retries follow the first attempt. */
  maxRetries(retries: number): this {
    this.#state.mutable('maxRetries()');
    parse(integer(0, MAX_ATTEMPTS - 1), retries, 'maxRetries()', 'INVALID_SCHEDULE');
    this.#state.setRetries({ max: retries + 1 }, 'maxRetries()');
    return this;
  }

  /** How long one attempt may take. */
  timeout(timeout: Duration): this {
    return this.#set('timeout', timeout);
  }

  /** How long the lock on one of its jobs lasts without renewal. */
  lease(lease: Duration): this {
    const input = this.#state.mutable('lease()');
    parse(leaseShape, lease, 'lease()', 'INVALID_SCHEDULE');
    input.lease = lease;
    return this;
  }

  /**
   * How long one run may take, over all its attempts. An occurrence that has not started within this time after it was due
   * (or created, if later) ends `expired`.
   */
  maxRunningTime(maxRunningTime: Duration): this {
    return this.#set('maxRunningTime', maxRunningTime);
  }

  /** A run that has not started this long after it was due never starts: it ends `expired`. */
  expiresIn(expiresIn: Duration): this {
    return this.#set('expiresIn', expiresIn);
  }

  /**
   * At most one run at a time, however it was created: an occurrence is skipped while another run is not finished, and a
   * dispatched or triggered run waits. Without this call only occurrences are skipped. `false` lets runs overlap.
   */
  singleInstance(single = true): this {
    this.overlap(single ? 'skip' : 'allow');
    this.#state.mutable('singleInstance()').singleInstance = single;
    return this;
  }

  overlap(overlap: Overlap): this {
    return this.#set('overlap', overlap);
  }

  onMisfire(policy: Misfire['policy'], limits: Omit<MisfireOptions, 'policy'> = {}): this {
    return this.#set(
      'misfire',
      { ...copyOptions(limits, 'the limits of onMisfire()', 'INVALID_SCHEDULE'), policy },
      'onMisfire()',
    );
  }

  enabled(enabled = true): this {
    return this.#set('enabled', enabled);
  }

  disable(): this {
    return this.enabled(false);
  }

  /** Runs only if the Scheduler's `environment` is one of these. An empty list means everywhere. */
  environments(...environments: (string | readonly string[])[]): this {
    return this.#set('environments', flatten(environments, 'environments()'));
  }

  /** A pass runs it after these definitions, which may be defined later. */
  dependsOn(...names: (string | readonly string[])[]): this {
    this.#state.mutable('dependsOn()').dependsOn.push(...flatten(names, 'dependsOn()'));
    return this;
  }

  /** Evaluated before a job runs; the job is skipped unless every filter returns true. */
  when(filter: boolean | Filter<A>): this {
    return this.#addHook('when', typeof filter === 'boolean' ? () => filter : filter);
  }

  /** Evaluated before a job runs; the job is skipped if any filter returns true. */
  skip(filter: boolean | Filter<A>): this {
    return this.#addHook('skip', typeof filter === 'boolean' ? () => filter : filter);
  }

  /** Runs before the handler. An error fails the attempt. */
  before(hook: Hook<A>): this {
    return this.#addHook('before', hook);
  }

  /** Runs after a completed attempt. */
  onSuccess(hook: SuccessHook<A>): this {
    return this.#addHook('onSuccess', hook);
  }

  /** Runs after a failed attempt. */
  onError(hook: ErrorHook<A>): this {
    return this.#addHook('onError', hook);
  }

  /** Runs after every attempt. */
  after(hook: Hook<A>): this {
    return this.#addHook('after', hook);
  }

  /** The next `count` occurrences after `from` (default: now). Freezes the definition. */
  nextRuns(count: number, from?: Instant): Date[] {
    const { context } = this.#definitions;
    const start =
      from === undefined ? this.#definitions.now() : parseInstant(from, context.timezone, 'nextRuns() from');
    const { rule, maxRuns } = this.freeze().schedule;
    return rule === null ? [] : nextRuns(occurrencesOf(rule, start), count, start, maxRuns ?? Infinity);
  }

  /** Runs it once more, after a delay, in addition to its schedule: `….delay('10s').dispatch()`. */
  delay(delay: Duration): BoundDraft {
    return bindDraft(new Draft<AnyPayloads, unknown>(this.#dispatch).delay(delay), this.#dispatchableName());
  }

  /** Runs it once more, at this instant, in addition to its schedule. */
  at(when: Instant): BoundDraft {
    return bindDraft(new Draft<AnyPayloads, unknown>(this.#dispatch).at(when), this.#dispatchableName());
  }

  /** Runs it once more, now, in addition to its schedule. */
  async dispatch(payload?: A): Promise<JobHandle> {
    return this.#dispatch(this.#dispatchableName(), payload, {});
  }

  #dispatchableName(): string {
    const { name, isUnnamedClosure } = this.freeze();
    if (!isUnnamedClosure) return name;
    throw new ChronosError(
      'INVALID_SCHEDULE',
      'an unnamed closure cannot be dispatched: name it with named(), so that workers find its code',
    );
  }

  #base<K extends BaseName>(name: K, value: ScheduleOptions[K]): this {
    this.#state.setBase({ [name]: value }, `${name}()`);
    return this;
  }

  #constrain(name: ConstraintName, values: number | readonly number[], where = `${name}()`): this {
    this.#state.addConstraint(name, values, where);
    return this;
  }

  #set<K extends keyof ScheduleOptions>(name: K, value: ScheduleOptions[K], where = `${name}()`): this {
    this.#state.set({ [name]: value }, where);
    return this;
  }

  #addHook(kind: keyof DefinitionInput['hooks'], fn: unknown): this {
    this.#state.addHook(kind, fn);
    return this;
  }

  static {
    for (const [name, frequency] of Object.entries(FREQUENCIES)) {
      const toCron = frequency.cron as (...args: unknown[]) => string;
      Object.defineProperty(this.prototype, name, {
        value: function (this: ScheduleBuilder<unknown>, ...args: unknown[]) {
          // Before toCron(), which throws for invalid arguments: a frozen definition is reported first.
          this.#state.mutable(`${name}()`);
          const { cron, overridable } = overridableCron(toCron(...args));
          this.#state.setBase({ cron }, `${name}()`, overridable);
          return this;
        },
      });
    }
    for (const [name, days] of Object.entries(WEEKDAYS)) {
      Object.defineProperty(this.prototype, name, {
        value: function (this: ScheduleBuilder<unknown>) {
          return this.#constrain('weekdays', days, `${name}()`);
        },
      });
    }
  }
}

const MAX_LISTED = 1000;

/** Texts and lists of texts as one list; the entries are not checked. */
function flatten<T>(values: readonly (T | readonly T[])[], where: string): T[] {
  const entriesOf = (value: T | readonly T[]): readonly T[] => {
    if (!isList(value)) return [value as T];
    if (value.length <= MAX_LISTED) return [...(value as readonly T[])];
    throw new ChronosError(
      'INVALID_SCHEDULE',
      `${where} takes lists with at most ${MAX_LISTED} entries, got one with ${value.length}`,
    );
  };
  return readable(() => values.flatMap(entriesOf), `an argument of ${where}`, 'INVALID_SCHEDULE');
}
