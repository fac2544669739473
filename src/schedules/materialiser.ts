import type { Clock } from '../domain/clock.js';
import type { JobDocument } from '../domain/job.js';
import { waitingBehind } from '../domain/owed.js';
import type { Plan } from '../domain/plan.js';
import { scheduleOf, type ScheduleDocument } from '../domain/schedule.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { ScheduleScope } from '../store/due-schedules.js';
import type { Store } from '../store/store.js';
import type { Decisions } from './decisions.js';
import type { Fulfilment } from './fulfilment.js';
import { unreadable } from './readable.js';
import type { Registrar } from './registrar.js';
import { TURN, type Turn } from './turn.js';

const BATCH = 500;
/** Whoever decided carries it out at once; after this many milliseconds others take it that it cannot any more. */
const LEFT_ALONE = 2000;
/** How long a schedule is left out that nothing can be done about, in milliseconds, unless a definition changes. */
const SET_ASIDE = 60_000;

export interface MaterialiserParts {
  clock: Clock;
  events: EventBus;
  random: () => number;
  store: Pick<Store, 'findDueSchedules' | 'findOwingSchedules' | 'findSchedules' | 'nextScheduleAt'>;
  turn: Turn;
  decisions: Decisions;
  fulfilment: Fulfilment;
  registrar: Registrar;
  environment: string;
  pollInterval: number;
  /** How many times longer than its interval the poll may wait: more than once while something tells of changes. */
  patience: () => number;
}

interface Found {
  due: ScheduleDocument[];
  owing: ScheduleDocument[];
  /** Those with a run in line behind one that ended here, which only this process knows. */
  freed: ScheduleDocument[];
  /** When the next one becomes due. */
  next: Date | null;
  /** There may be more that are due. */
  isFull: boolean;
}

/** Turns occurrences into jobs. Every worker does, without a leader: one stored decision per occurrence wins. */
export class Materialiser extends PeriodicService {
  readonly name = 'materialise schedules';
  readonly #parts: MaterialiserParts;
  /** Schedules nothing can be done about, until when (monotonic) they are left out. */
  readonly #aside = new Map<string, number>();
  readonly #unreadable = new Set<string>();
  /** Schedules seen with a run in line behind another: worth a look when one of their runs ends here. */
  readonly #inLine = new Set<string>();
  readonly #ended = new Set<string>();
  /** Where the look at what is owed goes on. */
  #owingAfter = '';

  constructor(parts: MaterialiserParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
  }

  /** A definition changed: also of one that was set aside. */
  changed(): void {
    this.#aside.clear();
    this.wake();
  }

  /** Somebody put a run in line here. */
  look(scheduleId: string): void {
    this.#ended.add(scheduleId);
    this.wake();
  }

  /** A job has ended in this process: the next in line may go. */
  runEnded(jobId: string): void {
    const scheduleId = scheduleOf(jobId);
    if (scheduleId === undefined || !this.#inLine.has(scheduleId)) return;
    this.#ended.add(scheduleId);
    this.wake();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#parts.turn.end();
  }

  async runOnce(): Promise<number> {
    await this.#parts.registrar.registerNew();
    let delay = await this.#round(this.#scope, []);
    // A full batch means there may be more.
    while (delay < 0 && !this.stopping) delay = await this.#round(this.#scope, []);
    return Math.min(this.#interval, delay);
  }

  /** One pass over everything that is due, or over the stored schedules only; returns the jobs it made. */
  async collect(scope: 'all' | 'stored'): Promise<JobDocument[]> {
    const made: JobDocument[] = [];
    const collecting = scope === 'all' ? this.#scope : { ...this.#scope, names: [] };
    while ((await this.#round(collecting, made, true)) < 0);
    return made;
  }

  /** One round of decisions; adds the jobs it made, and returns how long to wait for the next, less than 0 for not at all. */
  async #round(scope: ScheduleScope, made: JobDocument[], outOfTurn = false): Promise<number> {
    const { decisions, fulfilment, turn, pollInterval, random } = this.#parts;
    const now = this.clock.now();
    const { due, owing, freed, next, isFull } = await this.#find(scope, now);
    const mine = outOfTurn || due.length + owing.length === 0 || (await turn.isMine(scope));
    const readable = this.#readable([...due, ...owing, ...freed]);
    const schedules = mine ? readable : readable.filter((schedule) => freed.includes(schedule));
    const { won, lost, hopeless } =
      schedules.length === 0 ? { won: [], lost: 0, hopeless: [] } : await decisions.decide(schedules, now);
    for (const id of hopeless) this.#setAside(id);
    turn.observe(won.length, lost);
    if (won.length > 0) made.push(...(await fulfilment.carryOut(won, now)));
    const plans = new Map(won.map(({ schedule, plan }) => [schedule._id, plan]));
    for (const schedule of readable) this.#follow(schedule, plans.get(schedule._id) ?? schedule);
    if (!mine) return Math.min(pollInterval, TURN * (0.5 + random() / 2));
    if (isFull) return -1;
    const times = [next, ...won.map(({ plan }) => plan.nextRunAt)].filter((time) => time != null);
    // What others decided is not known: look again soon.
    const soonest = lost > 0 ? this.clock.now().getTime() : Math.min(...times.map((time) => time.getTime()));
    return Math.max(0, soonest - this.clock.now().getTime());
  }

  /** That a run has ended elsewhere is told by nobody: who has one in line behind it looks at every poll. */
  get #interval(): number {
    const { pollInterval, patience } = this.#parts;
    return this.#inLine.size > 0 ? pollInterval : pollInterval * patience();
  }

  #follow(schedule: ScheduleDocument, { owed, active }: Pick<Plan, 'owed' | 'active'>): void {
    if (waitingBehind(active, owed).length > 0 && schedule.overlap !== 'allow')
      this.#inLine.add(schedule._id);
    else this.#inLine.delete(schedule._id);
  }

  async #find(scope: ScheduleScope, now: Date): Promise<Found> {
    const { store } = this.#parts;
    const ended = [...this.#ended];
    this.#ended.clear();
    const before = new Date(now.getTime() - LEFT_ALONE);
    const [found, next, owing, freed] = await Promise.all([
      store.findDueSchedules(scope, now, BATCH),
      store.nextScheduleAt(scope, now),
      store.findOwingSchedules(scope, before, this.#owingAfter, BATCH),
      ended.length === 0 ? [] : store.findSchedules(ended),
    ]);
    this.#owingAfter = owing.length === BATCH ? (owing.at(-1)?._id ?? '') : '';
    // A scan in the order of the next time meets a schedule again that somebody moved on meanwhile: the last reading counts.
    const due = [...new Map(found.map((schedule) => [schedule._id, schedule])).values()];
    const seen = new Set(due.map(({ _id }) => _id));
    const unseen = ({ _id }: ScheduleDocument): boolean => !seen.has(_id) && seen.add(_id).size > 0;
    return {
      due,
      freed: freed.filter(unseen),
      owing: owing.filter(unseen),
      next,
      isFull: found.length === BATCH,
    };
  }

  #readable(schedules: readonly ScheduleDocument[]): ScheduleDocument[] {
    return schedules.filter((schedule) => {
      const reason = unreadable(schedule);
      if (reason === undefined) {
        this.#unreadable.delete(schedule._id);
        return true;
      }
      this.#setAside(schedule._id);
      if (!this.#unreadable.has(schedule._id)) {
        const count = this.#unreadable.add(schedule._id).size;
        this.events.emit('schedule:unreadable', { scheduleId: schedule._id, reason, count });
      }
      return false;
    });
  }

  #setAside(scheduleId: string): void {
    this.#aside.set(scheduleId, this.clock.monotonic() + SET_ASIDE);
  }

  get #scope(): ScheduleScope {
    const { registrar, environment } = this.#parts;
    const now = this.clock.monotonic();
    for (const [id, until] of this.#aside) if (until <= now) this.#aside.delete(id);
    return { names: registrar.names, environment, except: [...this.#aside.keys()] };
  }
}
