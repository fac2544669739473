import type { DispatchOptions } from '../config/dispatch-options.js';
import type { RetryOptions } from '../config/retry-options.js';
import type { ConstraintName } from '../config/rule-options.js';
import type { ScheduleContext } from '../config/rule-readers.js';
import { readSchedule, type MisfireOptions, type ScheduleOptions } from '../config/schedule-options.js';
import type { Draft } from '../dispatch/draft.js';
import type { JobHandle } from '../dispatch/job-handle.js';
import { readDuration, type Duration } from '../domain/duration.js';
import { ChronosError } from '../domain/errors.js';
import type { FieldSchedule } from '../domain/field-schedule.js';
import { FREQUENCIES, looseCron, secondsOfDay, WEEKDAYS, type FrequencyName } from '../domain/frequencies.js';
import { parseInstant, type Instant } from '../domain/instant.js';
import { nameFault } from '../domain/names.js';
import { nextRuns, occurrencesOf } from '../domain/occurrences.js';
import type { Misfire, Overlap } from '../domain/schedule.js';
import type { JobContext } from '../worker/handler.js';
import type { Definition, Said } from './definition.js';

type FrequencyMethods<B> = {
  [K in FrequencyName]: (...args: Parameters<(typeof FREQUENCIES)[K]['cron']>) => B;
};
type WeekdayMethods<B> = { [K in keyof typeof WEEKDAYS]: () => B };

/** What a builder needs of the scheduler that made it. */
export interface BuilderHost {
  readonly context: ScheduleContext;
  now(): Date;
  /** Throws SCHEDULE_EXISTS when another definition has the name. */
  claimName(name: string, builder: object): void;
  freeName(name: string): void;
  build(said: Said, builder: object): Definition;
  draft(): Draft<string>;
  dispatch(name: string, payload: unknown, options: DispatchOptions): Promise<JobHandle>;
}

// The frequency helpers and the days of the week are defined below, from their tables.

export interface ScheduleBuilder<A>
  extends FrequencyMethods<ScheduleBuilder<A>>, WeekdayMethods<ScheduleBuilder<A>> {}

/**
 * Says when and how something runs. The last frequency sets the base; constraints narrow it, all of them must hold,
 * in any order of calls. Frozen when the scheduler starts, when a pass runs, and when it is first read.
 */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging
export class ScheduleBuilder<A> {
  readonly #host: BuilderHost;
  readonly #said: Said;
  #definition: Definition | undefined;

  constructor(host: BuilderHost, said: Said) {
    this.#host = host;
    this.#said = said;
  }

  /** What was said, complete; from now on it cannot be changed. */
  freeze(): Definition {
    this.#definition ??= this.#host.build(this.#said, this);
    return this.#definition;
  }

  named(name: string): this {
    const said = this.#open('named()');
    const fault = nameFault(name);
    if (fault !== undefined)
      throw new ChronosError('INVALID_SCHEDULE', `named(): the name of a schedule ${fault}`);
    this.#host.claimName(name, this);
    if (said.name !== undefined && said.name !== name) this.#host.freeName(said.name);
    said.name = name;
    return this;
  }

  /** What the handler is given, unless a dispatch brings its own. */
  args(payload: A): this {
    this.#open('args()').payload = payload;
    return this;
  }

  /** Five or six fields, names (`MON`, `JAN`), `@daily` and its like. */
  cron(expression: string): this {
    return this.#base({ cron: expression }, 'cron()');
  }

  /** Field by field; all that are given must match. */
  fields(fields: FieldSchedule): this {
    return this.#base({ fields }, 'fields()');
  }

  /** By name: `EVERY_HOUR`, or one of the Scheduler's `symbols`. */
  symbol(symbol: string): this {
    return this.#base({ symbol }, 'symbol()');
  }

  /** An interval in real time, from `startsAt` or from when the schedule was first stored. */
  every(interval: Duration): this {
    return this.#base({ every: interval }, 'every()');
  }

  seconds(values: number | readonly number[]): this {
    return this.#constrain('seconds', values, 'seconds()');
  }

  minutes(values: number | readonly number[]): this {
    return this.#constrain('minutes', values, 'minutes()');
  }

  hours(values: number | readonly number[]): this {
    return this.#constrain('hours', values, 'hours()');
  }

  /** Days of the month. */
  days(values: number | readonly number[]): this {
    return this.#constrain('days', values, 'days()');
  }

  months(values: number | readonly number[]): this {
    return this.#constrain('months', values, 'months()');
  }

  /** 0 is Sunday. */
  daysOfWeek(values: number | readonly number[]): this {
    return this.#constrain('weekdays', values, 'daysOfWeek()');
  }

  /** Times of the day, both included; may pass midnight. */
  between(from: string, to: string): this {
    const { between } = this.#open('between()').options;
    this.#check({ between: [from, to] }, 'between()');
    return this.#say(
      { between: between === undefined ? [from, to] : bothWindows(between, [from, to]) },
      'between()',
    );
  }

  /** Days without a run: `'2026-12-24'`, or `'12-25'` for every year. They add up. */
  except(...dates: (string | readonly string[])[]): this {
    const { except = [] } = this.#said.options;
    return this.#say({ except: [...except, ...dates.flat()] }, 'except()');
  }

  timezone(timezone: string): this {
    return this.#say({ timezone }, 'timezone()');
  }

  startsAt(startsAt: Instant): this {
    return this.#say({ startsAt }, 'startsAt()');
  }

  endsAt(endsAt: Instant): this {
    return this.#say({ endsAt }, 'endsAt()');
  }

  maxRuns(maxRuns: number): this {
    return this.#say({ maxRuns }, 'maxRuns()');
  }

  /** Delays each run by up to this, evenly spread. */
  jitter(jitter: Duration): this {
    return this.#say({ jitter }, 'jitter()');
  }

  /** Its jobs go into this queue; without one, a one-pass run executes them in place. */
  queue(queue: string): this {
    return this.#say({ queue }, 'queue()');
  }

  priority(priority: number): this {
    return this.#say({ priority }, 'priority()');
  }

  retries(retries: RetryOptions): this {
    return this.#say({ retries: { ...this.#said.options.retries, ...retries } }, 'retries()');
  }

  /** This many retries after the first attempt. */
  maxRetries(retries: number): this {
    this.#open('maxRetries()');
    if (!Number.isInteger(retries) || retries < 0 || retries > 999) {
      throw new ChronosError(
        'INVALID_SCHEDULE',
        `maxRetries() takes a whole number from 0 to 999, got ${String(retries)}`,
      );
    }
    return this.#say({ retries: { ...this.#said.options.retries, max: retries + 1 } }, 'maxRetries()');
  }

  /** Longest time of one attempt. */
  timeout(timeout: Duration): this {
    return this.#say({ timeout }, 'timeout()');
  }

  /** How long a lock on its jobs holds without renewal. */
  lease(lease: Duration): this {
    const said = this.#open('lease()');
    const read = readDuration(lease);
    if ('fault' in read) throw new ChronosError('INVALID_SCHEDULE', `lease() ${read.fault}`);
    if (read.ms < 500)
      throw new ChronosError('INVALID_SCHEDULE', `lease() must be at least 500 ms, got ${read.ms}`);
    said.lease = lease;
    return this;
  }

  /** Longest time of one run, over all its attempts. */
  maxRunningTime(maxRunningTime: Duration): this {
    return this.#say({ maxRunningTime }, 'maxRunningTime()');
  }

  /** The default: while a run is not finished, further occurrences are skipped. `false` lets them overlap. */
  singleInstance(single = true): this {
    return this.overlap(single ? 'skip' : 'allow');
  }

  overlap(overlap: Overlap): this {
    return this.#say({ overlap }, 'overlap()');
  }

  onMisfire(policy: Misfire['policy'], limits: Omit<MisfireOptions, 'policy'> = {}): this {
    return this.#say({ misfire: { ...limits, policy } }, 'onMisfire()');
  }

  enabled(enabled = true): this {
    return this.#say({ enabled }, 'enabled()');
  }

  disable(): this {
    return this.enabled(false);
  }

  /** Only where the Scheduler's `environment` is one of these; none is no restriction. */
  environments(...environments: (string | readonly string[])[]): this {
    return this.#say({ environments: environments.flat() }, 'environments()');
  }

  /** In a one-pass run it comes after these. They may be defined later. */
  dependsOn(...names: (string | readonly string[])[]): this {
    this.#open('dependsOn()').dependsOn.push(...names.flat());
    return this;
  }

  /** Asked when a job is about to run; every one of them must hold. */
  when(filter: boolean | ((args: A, job: JobContext) => boolean | Promise<boolean>)): this {
    return this.#around('when', typeof filter === 'boolean' ? () => filter : filter);
  }

  /** Asked when a job is about to run; any of them skips it. */
  skip(filter: boolean | ((args: A, job: JobContext) => boolean | Promise<boolean>)): this {
    return this.#around('skip', typeof filter === 'boolean' ? () => filter : filter);
  }

  /** Before the handler. One that throws fails the attempt. */
  before(hook: (args: A, job: JobContext) => unknown): this {
    return this.#around('before', hook);
  }

  /** After an attempt that completed. */
  onSuccess(hook: (args: A, job: JobContext, result: unknown) => unknown): this {
    return this.#around('onSuccess', hook);
  }

  /** After an attempt that failed. */
  onError(hook: (error: Error, args: A, job: JobContext) => unknown): this {
    return this.#around('onError', hook);
  }

  /** After every attempt, whatever it came to. */
  after(hook: (args: A, job: JobContext) => unknown): this {
    return this.#around('after', hook);
  }

  /** The next `count` occurrences after an instant, now unless said. Reading it freezes the definition. */
  nextRuns(count: number, from?: Instant): Date[] {
    const start =
      from === undefined
        ? this.#host.now()
        : parseInstant(from, this.#host.context.timezone, 'nextRuns() from');
    const { rule, maxRuns } = this.freeze().schedule;
    return rule === null ? [] : nextRuns(occurrencesOf(rule, start), count, start, maxRuns ?? Infinity);
  }

  /** Runs it once more, besides its schedule, this long from now: `….delay('10s').dispatch()`. */
  delay(delay: Duration): BoundDraft {
    return this.#bound(this.#host.draft().delay(delay));
  }

  /** Runs it once more, besides its schedule, at this instant. */
  at(when: Instant): BoundDraft {
    return this.#bound(this.#host.draft().at(when));
  }

  /** Runs it once more, besides its schedule, now. */
  async dispatch(payload?: A): Promise<JobHandle> {
    return this.#host.dispatch(this.#dispatchable(), payload, {});
  }

  #bound(draft: Draft<string>): BoundDraft {
    const name = this.#dispatchable();
    return {
      args: (payload) => this.#bound(draft.args(payload)),
      dispatch: () => draft.dispatch(name),
    };
  }

  #dispatchable(): string {
    const { name, isUnnamedClosure } = this.freeze();
    if (!isUnnamedClosure) return name;
    throw new ChronosError(
      'INVALID_SCHEDULE',
      'an unnamed closure cannot be dispatched, workers would not find its code: give it a name with named()',
    );
  }

  /** The base, in place of any before it. */
  #base(base: Pick<ScheduleOptions, 'cron' | 'fields' | 'symbol' | 'every'>, where: string): this {
    const said = this.#open(where);
    this.#check(base, where);
    const { cron: _c, fields: _f, symbol: _s, every: _e, ...rest } = said.options;
    said.options = rest;
    said.loose = [];
    return this.#say(base, where);
  }

  /** For the methods made from the table of frequencies. */
  protected frequency(name: FrequencyName, marked: () => string): this {
    this.#open(`${name}()`);
    const { cron, loose } = looseCron(marked());
    this.#base({ cron }, `${name}()`);
    this.#said.loose = loose;
    return this;
  }

  protected onDays(name: string, days: readonly number[]): this {
    return this.#constrain('weekdays', days, `${name}()`);
  }

  #constrain(name: ConstraintName, values: number | readonly number[], where: string): this {
    const before = this.#open(where).options[name];
    this.#check({ [name]: values }, where);
    const both =
      before === undefined
        ? [values].flat()
        : [values].flat().filter((value) => [before].flat().includes(value));
    if (both.length > 0) return this.#say({ [name]: both }, where);
    throw new ChronosError(
      'INVALID_SCHEDULE',
      `${where} leaves nothing of what was said before: all constraints must hold at once. Give all values in one call`,
    );
  }

  #around(kind: keyof Said['around'], fn: unknown): this {
    const said = this.#open(`${kind}()`);
    if (typeof fn !== 'function') {
      throw new ChronosError('INVALID_SCHEDULE', `${kind}() takes a function, got ${typeof fn}`);
    }
    (said.around[kind] as unknown[]).push(fn);
    return this;
  }

  #say(options: ScheduleOptions, where: string): this {
    const said = this.#open(where);
    this.#check(options, where);
    said.options = { ...said.options, ...options };
    return this;
  }

  /** What is wrong by itself is refused at the call that says it. */
  #check(options: ScheduleOptions, where: string): void {
    const [unsaid] = Object.entries(options).find(([, value]) => value === undefined) ?? [];
    if (unsaid !== undefined) {
      throw new ChronosError('INVALID_SCHEDULE', `${where}.${unsaid} needs a value, got undefined`);
    }
    readSchedule(options, this.#host.context, where);
  }

  #open(where: string): Said {
    if (this.#definition === undefined) return this.#said;
    throw new ChronosError(
      'SCHEDULE_FROZEN',
      `${where}: the definition '${this.#definition.name}' is in use and cannot be changed any more. Say everything before start(), a pass, or the first time it is read`,
    );
  }
}

/** The times of the day that lie in both windows, when that is one window. */
function bothWindows(
  one: readonly [string, string],
  other: readonly [string, string],
): readonly [string, string] {
  const passesMidnight = ([from, to]: readonly [string, string]): boolean =>
    (secondsOfDay(from) ?? 0) > (secondsOfDay(to) ?? 0);
  const later = (a: string, b: string): string => ((secondsOfDay(a) ?? 0) > (secondsOfDay(b) ?? 0) ? a : b);
  const earlier = (a: string, b: string): string => (later(a, b) === a ? b : a);
  const both = [later(one[0], other[0]), earlier(one[1], other[1])] as const;
  if (!passesMidnight(one) && !passesMidnight(other) && !passesMidnight(both)) return both;
  throw new ChronosError(
    'INVALID_SCHEDULE',
    `between() was said before, and what is left of both is not one stretch of the day: say it once`,
  );
}

/** A dispatch of a definition, with a time of its own. */
export interface BoundDraft {
  args(payload: unknown): BoundDraft;
  dispatch(): Promise<JobHandle>;
}

for (const [name, { cron }] of Object.entries(FREQUENCIES)) {
  const marked = cron as (...args: unknown[]) => string;
  Object.defineProperty(ScheduleBuilder.prototype, name, {
    value: function (this: { frequency(name: string, marked: () => string): unknown }, ...args: unknown[]) {
      return this.frequency(name, () => marked(...args));
    },
  });
}
for (const [name, days] of Object.entries(WEEKDAYS)) {
  Object.defineProperty(ScheduleBuilder.prototype, name, {
    value: function (this: { onDays(name: string, days: readonly number[]): unknown }) {
      return this.onDays(name, days);
    },
  });
}
