import type { Clock } from '../domain/clock.js';
import type { JobDocument } from '../domain/job.js';
import { scheduleOf, type ScheduleDocument } from '../domain/schedule.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { ScheduleScope } from '../store/due-schedules.js';
import type { Store } from '../store/store.js';
import type { Decisions } from './decisions.js';
import { unreadable } from './readable.js';
import type { Registrar } from './registrar.js';

const BATCH = 500;
/** Whoever decided carries it out at once; after this many milliseconds others take it that it cannot any more. */
const LEFT_ALONE = 2000;
/** After a round that others won, wait up to this long: one of the processes then does the work for all. */
const SPREAD = 50;

export interface MaterialiserParts {
  clock: Clock;
  events: EventBus;
  random: () => number;
  store: Pick<Store, 'findDueSchedules' | 'findOwingSchedules' | 'findSchedules' | 'nextScheduleAt'>;
  decisions: Decisions;
  registrar: Registrar;
  environment: string;
  pollInterval: number;
}

/** Turns occurrences into jobs. Every worker does, without a leader: one stored decision per occurrence wins. */
export class Materialiser extends PeriodicService {
  readonly name = 'materialise schedules';
  readonly #parts: MaterialiserParts;
  readonly #unreadable = new Set<string>();
  /** Schedules seen with a run in line behind another: worth a look when one of their runs ends here. */
  readonly #inLine = new Set<string>();
  readonly #ended = new Set<string>();
  #contended = false;

  constructor(parts: MaterialiserParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
  }

  /** A job has ended in this process: the next in line may go. */
  runEnded(jobId: string): void {
    const scheduleId = scheduleOf(jobId);
    if (scheduleId === undefined || !this.#inLine.has(scheduleId)) return;
    this.#ended.add(scheduleId);
    this.wake();
  }

  async runOnce(): Promise<number> {
    const { registrar, random } = this.#parts;
    if (this.#contended) await this.clock.sleep(random() * SPREAD);
    await registrar.registerNew();
    // A full batch means there may be more.
    while (!this.stopping && (await this.#round(this.#scope)) === BATCH);
    return this.#untilNext();
  }

  /** One pass over everything that is due, or over the stored schedules only; returns the jobs it made. */
  async collect(scope: 'all' | 'stored'): Promise<JobDocument[]> {
    const made: JobDocument[] = [];
    const collecting = scope === 'all' ? this.#scope : { ...this.#scope, names: [] };
    while ((await this.#round(collecting, made)) === BATCH);
    return made;
  }

  /** One round of decisions on everything that is due; returns how many schedules there were. */
  async #round(scope: ScheduleScope, made: JobDocument[] = []): Promise<number> {
    const { decisions } = this.#parts;
    const now = this.clock.now();
    const { due, owing } = await this.#find(scope, now);
    const schedules = this.#readable([...due, ...owing]);
    if (schedules.length === 0) return 0;
    const { won: decided, lost } = await decisions.decide(schedules, now);
    this.#contended = lost > decided.length;
    made.push(...(await decisions.carryOut(decided, now)));
    for (const { schedule, plan } of decided) {
      const waits = plan.owed.some(({ kind, id }) => kind === 'run' && id !== plan.active);
      if (waits && schedule.overlap !== 'allow') this.#inLine.add(schedule._id);
      else this.#inLine.delete(schedule._id);
    }
    return due.length;
  }

  async #find(
    scope: ScheduleScope,
    now: Date,
  ): Promise<{ due: ScheduleDocument[]; owing: ScheduleDocument[] }> {
    const { store } = this.#parts;
    const ended = [...this.#ended];
    this.#ended.clear();
    const before = new Date(now.getTime() - LEFT_ALONE);
    const [due, owing, freed] = await Promise.all([
      store.findDueSchedules(scope, now, BATCH),
      store.findOwingSchedules(scope, before, BATCH),
      ended.length === 0 ? [] : store.findSchedules(ended),
    ]);
    const seen = new Set(due.map(({ _id }) => _id));
    const others = [...owing, ...freed].filter(({ _id }) => !seen.has(_id) && seen.add(_id));
    return { due, owing: others };
  }

  #readable(schedules: readonly ScheduleDocument[]): ScheduleDocument[] {
    return schedules.filter((schedule) => {
      const reason = unreadable(schedule);
      if (reason === undefined) return true;
      this.#unreadable.add(schedule._id);
      const count = this.#unreadable.size;
      this.events.emit('schedule:unreadable', { scheduleId: schedule._id, reason, count });
      return false;
    });
  }

  async #untilNext(): Promise<number> {
    const { store, pollInterval } = this.#parts;
    const next = await store.nextScheduleAt(this.#scope);
    if (next === null) return pollInterval;
    return Math.min(pollInterval, Math.max(0, next.getTime() - this.clock.now().getTime()));
  }

  get #scope(): ScheduleScope {
    const { registrar, environment } = this.#parts;
    return { names: registrar.names, environment, except: [...this.#unreadable] };
  }
}
