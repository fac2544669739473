import type { DispatchOptions } from '../config/dispatch-options.js';
import type { RetryOptions } from '../config/retry-options.js';
import type { BaseName, ConstraintName } from '../config/rule-options.js';
import type { ScheduleContext } from '../config/rule-readers.js';
import type { MisfireOptions, ScheduleOptions } from '../config/schedule-options.js';
import type { Draft } from '../dispatch/draft.js';
import type { JobHandle } from '../dispatch/job-handle.js';
import { readDuration, type Duration } from '../domain/duration.js';
import { ChronosError } from '../domain/errors.js';
import type { FieldSchedule } from '../domain/field-schedule.js';
import { looseCron, type FrequencyName } from '../domain/frequencies.js';
import { parseInstant, type Instant } from '../domain/instant.js';
import { nameFault } from '../domain/names.js';
import { nextRuns, occurrencesOf } from '../domain/occurrences.js';
import type { Misfire, Overlap } from '../domain/schedule.js';
import type { JobContext } from '../worker/handler.js';
import { bindDraft, type BoundDraft } from './bound-draft.js';
import type { Definition, Said } from './definition.js';
import { defineFrequencies, type FrequencyMethods, type WeekdayMethods } from './frequency-methods.js';
import { Saying } from './saying.js';

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

// The frequency helpers and the days of the week are defined at the end, from their tables.

export interface ScheduleBuilder<A>
  extends FrequencyMethods<ScheduleBuilder<A>>, WeekdayMethods<ScheduleBuilder<A>> {}

/**
 * Says when and how something runs. The last frequency sets the base; constraints narrow it, all of them must hold,
 * in any order of calls. Frozen when the scheduler starts, when a pass runs, and when it is first read.
 */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging
export class ScheduleBuilder<A> {
  readonly #host: BuilderHost;
  readonly #saying: Saying;

  constructor(host: BuilderHost, said: Said) {
    this.#host = host;
    this.#saying = new Saying(said, host.context);
  }

  /** What was said, complete; from now on it cannot be changed. */
  freeze(): Definition {
    return this.#saying.freeze((said) => this.#host.build(said, this));
  }

  named(name: string): this {
    const said = this.#saying.open('named()');
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
    this.#saying.open('args()').payload = payload;
    return this;
  }

  /** Five or six fields, names (`MON`, `JAN`), `@daily` and its like. */
  cron(expression: string): this {
    return this.#base('cron', expression);
  }

  /** Field by field; all that are given must match. */
  fields(fields: FieldSchedule): this {
    return this.#base('fields', fields);
  }

  /** By name: `EVERY_HOUR`, or one of the Scheduler's `symbols`. */
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
    this.#saying.narrowTimes([from, to], 'between()');
    return this;
  }

  /** Days without a run: `'2026-12-24'`, or `'12-25'` for every year. They add up. */
  except(...dates: (string | readonly string[])[]): this {
    const { except = [] } = this.#saying.open('except()').options;
    return this.#say('except', [...except, ...dates.flat()]);
  }

  timezone(timezone: string): this {
    return this.#say('timezone', timezone);
  }

  startsAt(startsAt: Instant): this {
    return this.#say('startsAt', startsAt);
  }

  endsAt(endsAt: Instant): this {
    return this.#say('endsAt', endsAt);
  }

  maxRuns(maxRuns: number): this {
    return this.#say('maxRuns', maxRuns);
  }

  /** Delays each run by up to this, evenly spread. */
  jitter(jitter: Duration): this {
    return this.#say('jitter', jitter);
  }

  /** Its jobs go into this queue; without one, a one-pass run executes them in place. */
  queue(queue: string): this {
    return this.#say('queue', queue);
  }

  priority(priority: number): this {
    return this.#say('priority', priority);
  }

  retries(retries: RetryOptions): this {
    const { retries: before } = this.#saying.open('retries()').options;
    return this.#say('retries', { ...before, ...retries });
  }

  /** This many retries after the first attempt. */
  maxRetries(retries: number): this {
    const { retries: before } = this.#saying.open('maxRetries()').options;
    if (!Number.isInteger(retries) || retries < 0 || retries > 999) {
      throw new ChronosError(
        'INVALID_SCHEDULE',
        `maxRetries() takes a whole number from 0 to 999, got ${String(retries)}`,
      );
    }
    return this.#say('retries', { ...before, max: retries + 1 }, 'maxRetries()');
  }

  /** Longest time of one attempt. */
  timeout(timeout: Duration): this {
    return this.#say('timeout', timeout);
  }

  /** How long a lock on its jobs holds without renewal. */
  lease(lease: Duration): this {
    const said = this.#saying.open('lease()');
    const read = readDuration(lease);
    if ('fault' in read) throw new ChronosError('INVALID_SCHEDULE', `lease() ${read.fault}`);
    if (read.ms < 500)
      throw new ChronosError('INVALID_SCHEDULE', `lease() must be at least 500 ms, got ${read.ms}`);
    said.lease = lease;
    return this;
  }

  /** Longest time of one run, over all its attempts. */
  maxRunningTime(maxRunningTime: Duration): this {
    return this.#say('maxRunningTime', maxRunningTime);
  }

  /** The default: while a run is not finished, further occurrences are skipped. `false` lets them overlap. */
  singleInstance(single = true): this {
    return this.overlap(single ? 'skip' : 'allow');
  }

  overlap(overlap: Overlap): this {
    return this.#say('overlap', overlap);
  }

  onMisfire(policy: Misfire['policy'], limits: Omit<MisfireOptions, 'policy'> = {}): this {
    return this.#say('misfire', { ...limits, policy }, 'onMisfire()');
  }

  enabled(enabled = true): this {
    return this.#say('enabled', enabled);
  }

  disable(): this {
    return this.enabled(false);
  }

  /** Only where the Scheduler's `environment` is one of these; none is no restriction. */
  environments(...environments: (string | readonly string[])[]): this {
    return this.#say('environments', environments.flat());
  }

  /** In a one-pass run it comes after these. They may be defined later. */
  dependsOn(...names: (string | readonly string[])[]): this {
    this.#saying.open('dependsOn()').dependsOn.push(...names.flat());
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
    return bindDraft(this.#host.draft().delay(delay), this.#dispatchable());
  }

  /** Runs it once more, besides its schedule, at this instant. */
  at(when: Instant): BoundDraft {
    return bindDraft(this.#host.draft().at(when), this.#dispatchable());
  }

  /** Runs it once more, besides its schedule, now. */
  async dispatch(payload?: A): Promise<JobHandle> {
    return this.#host.dispatch(this.#dispatchable(), payload, {});
  }

  #dispatchable(): string {
    const { name, isUnnamedClosure } = this.freeze();
    if (!isUnnamedClosure) return name;
    throw new ChronosError(
      'INVALID_SCHEDULE',
      'an unnamed closure cannot be dispatched, workers would not find its code: give it a name with named()',
    );
  }

  /** For the methods made from the table of frequencies. */
  protected frequency(name: FrequencyName, marked: () => string): this {
    this.#saying.open(`${name}()`);
    const { cron, loose } = looseCron(marked());
    this.#saying.sayBase({ cron }, `${name}()`, loose);
    return this;
  }

  protected onDays(name: string, days: readonly number[]): this {
    return this.#constrain('weekdays', days, `${name}()`);
  }

  #base<K extends BaseName>(name: K, value: ScheduleOptions[K]): this {
    this.#saying.sayBase({ [name]: value }, `${name}()`);
    return this;
  }

  #constrain(name: ConstraintName, values: number | readonly number[], where = `${name}()`): this {
    this.#saying.narrow(name, values, where);
    return this;
  }

  #say<K extends keyof ScheduleOptions>(name: K, value: ScheduleOptions[K], where = `${name}()`): this {
    this.#saying.say({ [name]: value }, where);
    return this;
  }

  #around(kind: keyof Said['around'], fn: unknown): this {
    this.#saying.addAround(kind, fn);
    return this;
  }
}

defineFrequencies(ScheduleBuilder.prototype);
