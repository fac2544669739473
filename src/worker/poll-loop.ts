import type { Clock } from '../domain/clock.js';
import { isSuspect } from '../domain/job.js';
import type { EventBus } from '../runtime/event-bus.js';
import { Pace } from '../runtime/pace.js';
import { PeriodicService } from '../runtime/service.js';
import type { Store } from '../store/store.js';
import type { BufferSize } from './buffer-size.js';
import type { ClaimedJob } from './claimed-job.js';
import type { JobPicker } from './job-picker.js';
import type { JobRunner } from './job-runner.js';
import type { Settler } from './settler.js';

/** A job that waits longer than this in the buffer is better off with another worker. */
const STALE_AFTER = 1000;
/** Past this many unwritten outcomes the database is slower than the handlers: no new claims until it catches up. */
const MOST_UNSETTLED = 2000;
/** Hungry for this long, in milliseconds, it is busy, and does not need to hear of more. */
const BUSY_AFTER = 1000;

export interface PollLoopParts {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'nextDueAt'>;
  picker: JobPicker;
  runner: JobRunner;
  settler: Settler;
  bufferSize: BufferSize;
  queues: readonly string[];
  taskTypes: () => readonly string[];
  pollInterval: number;
  /** How many times longer than its interval the poll may wait: more than once while something tells of new jobs. */
  patience: () => number;
  /** There is room for more than there was to claim, after a time of plenty. */
  onSated: () => void;
  giveBack: (claimed: readonly ClaimedJob[]) => Promise<void>;
  /** One claim at a time in this process: each counts the slots the one before it has left. */
  exclusively: <T>(work: () => Promise<T>) => Promise<T>;
}

/**
 * Claims as much as there is room for. Polling is the truth; nudges, freed slots and the time of the next due job
 * only make it happen earlier.
 */
export class PollLoop extends PeriodicService {
  readonly name = 'claim jobs';
  readonly #parts: PollLoopParts;
  readonly #pace: Pace;
  #hinted = false;
  /** Since when (monotonic) claims come back full: there may be more, so a slot that frees is refilled at once. */
  #hungrySince: number | undefined;
  /** The last claim may have left some out: suspects, which wait for a slot and for each other, or zombies. */
  #leftSome = false;
  #wasEmpty = false;
  #claimedAt = 0;
  #startedBefore = 0;

  constructor(parts: PollLoopParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
    this.#pace = new Pace(parts.clock);
  }

  /** There is more than enough to do. */
  get isBusy(): boolean {
    return this.#hungrySince !== undefined && this.clock.monotonic() - this.#hungrySince >= BUSY_AFTER;
  }

  /** A slot is free, or an outcome was written: there may be room for more. */
  roomMade(): void {
    if (this.#isHungry || this.#leftSome) this.wake();
  }

  /** There may be something to claim. Many hints in a burst cause a few claims. */
  hint(): void {
    this.#hinted = true;
    this.wakeWithin(this.#pace.wait);
  }

  /** A job is due then. */
  dueAt(time: Date): void {
    const left = time.getTime() - this.clock.now().getTime();
    if (left > 0) this.wakeWithin(left);
    else this.hint();
  }

  async runOnce(): Promise<number> {
    const { runner, giveBack, pollInterval, bufferSize, exclusively } = this.#parts;
    if (this.#hinted) this.#pace.step();
    this.#hinted = false;
    const stale = runner.takeWaiting(STALE_AFTER);
    if (stale.length > 0) {
      bufferSize.observeStall();
      await giveBack(stale);
    }
    const since = this.clock.now();
    const claimed = await exclusively(async () => {
      // It may have waited for its turn until after the stop.
      if (this.stopping) return [];
      const found = await this.#claim();
      if (this.stopping) {
        await giveBack(found);
        return [];
      }
      runner.accept(found);
      return found;
    });
    // More suspects may have stood before jobs that can be taken beside this one.
    if (claimed.some(({ job }) => isSuspect(job))) return 0;
    if (this.#isHungry) return this.#room() > 0 ? 0 : this.#untilStale(pollInterval);
    return this.#untilStale(await this.#untilNextDue(since));
  }

  async #claim(): Promise<ClaimedJob[]> {
    const { picker, runner, bufferSize, clock } = this.#parts;
    const all = this.#room();
    if (all === 0) {
      this.#setHungry(true);
      return [];
    }
    // After a time without work one job alone is the likeliest, and taken in one round trip instead of two.
    const one = this.#wasEmpty && runner.freeSlots > 0;
    const [slots, room] = one ? [1, 1] : [runner.freeSlots, all];
    const request = {
      slots,
      buffer: room - slots,
      withoutSuspects: runner.hasSuspect,
      exclude: runner.zombies,
    };
    const claimed = await picker.pick(request);
    const now = clock.monotonic();
    const isFull = claimed.length === room;
    // After a time without work it says nothing how much was started since.
    if (this.#isHungry) {
      const started = runner.started - this.#startedBefore;
      bufferSize.observeClaim(started, now - this.#claimedAt, isFull && runner.freeSlots > 0);
    }
    // A round that was lost to others says nothing about how much there is.
    this.#setHungry(isFull || picker.isContended);
    this.#wasEmpty = claimed.length === 0;
    this.#startedBefore = runner.started;
    this.#claimedAt = now;
    this.#leftSome =
      slots === 0 ||
      request.withoutSuspects ||
      request.exclude.length > 0 ||
      claimed.some(({ job }) => isSuspect(job));
    return claimed;
  }

  get #isHungry(): boolean {
    return this.#hungrySince !== undefined;
  }

  #setHungry(isHungry: boolean): void {
    const wasHungry = this.#isHungry;
    this.#hungrySince = isHungry ? (this.#hungrySince ?? this.clock.monotonic()) : undefined;
    if (wasHungry && !isHungry) this.#parts.onSated();
  }

  get #interval(): number {
    return this.#parts.pollInterval * this.#parts.patience();
  }

  /** How many jobs can be taken now: free slots, and the buffer once half of it is used up, so that claims are large. */
  #room(): number {
    const { runner, settler, bufferSize } = this.#parts;
    if (settler.pending > MOST_UNSETTLED) return 0;
    const buffer = bufferSize.target(runner.sinceLastStart);
    const ahead = runner.waiting > buffer / 2 ? 0 : buffer - runner.waiting;
    return runner.freeSlots + ahead;
  }

  /** `after`: from before the claim, or what became due during it would be in neither. */
  async #untilNextDue(after: Date): Promise<number> {
    const { store, queues, taskTypes, clock } = this.#parts;
    const interval = this.#interval;
    const until = new Date(clock.now().getTime() + interval);
    const next = await store.nextDueAt({ queues, taskTypes: taskTypes(), after, until });
    return next === null ? interval : Math.max(0, next.getTime() - clock.now().getTime());
  }

  #untilStale(delay: number): number {
    return this.#parts.runner.waiting > 0 ? Math.min(delay, STALE_AFTER) : delay;
  }
}
