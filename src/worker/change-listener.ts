import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import { BurstThrottle } from '../runtime/burst-throttle.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import { whenSettled } from '../runtime/waiting.js';
import type { ChangeBatch, ChangeStreamRequest } from '../store/change-stream.js';
import type { Store } from '../store/store.js';

/** MongoDB's error code on a standalone server, which has no change streams. */
const NOT_A_REPLICA_SET = 40_573;
/** MongoDB's error code if the user may not do this. */
const UNAUTHORIZED = 13;
/** A standalone server may become a replica set, and a user may get more rights. */
const RETRY_UNAVAILABLE_MS = 3_600_000;
/** The stream rests until resume(); nothing else ends the wait earlier. */
const RESTING_MS = 3_600_000;
/** While the stream rests, polls find changes within this time. */
const RESTING_POLL_MS = 1000;
/** While the stream works, polls only find what it missed, so they are this many times less frequent. */
const HEALTHY_STREAM_MULTIPLIER = 6;

export interface ChangeSubscriber {
  onChanges(batch: ChangeBatch): void;
  /** Changes may have been missed; pollers must read again. */
  onMissedChanges(): void;
}

export interface ChangeListenerDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'watchChanges'>;
  registry: Pick<HandlerRegistry, 'taskTypes' | 'onChange'>;
  options: Pick<ResolvedOptions, 'queues' | 'pollInterval'>;
  /** Connected to mongos, through which the stream reports changes up to 9 s late: it waits until every shard, also an idle one, has reported its progress. */
  usesMongos: boolean;
}

interface Stream {
  readonly batches: ReturnType<Store['watchChanges']>;
  readonly closing: AbortController;
  readonly request: ChangeStreamRequest;
}

/** How long to wait until the stream is closed. */
const MAX_CLOSE_MS = 2000;

const NO_JOBS: ReadonlySet<string> = new Set();

/**
 * Reads one change stream for all subscribers in this process. Its messages are hints: without a stream, or while it is
 * broken, polls find the same changes later. A worker starts it; in a process without a worker it runs while there are
 * awaited jobs.
 */
export class ChangeListener extends PeriodicService {
  readonly name = 'watch changes';
  readonly #deps: ChangeListenerDeps;
  readonly #throttle: BurstThrottle;
  readonly #subscribers: ChangeSubscriber[] = [];
  #stream: Stream | undefined;
  #isHealthy = false;
  #isResting = false;
  /** Set between start() and stop(). */
  #unsubscribe: (() => void) | undefined;
  #awaited = NO_JOBS;

  constructor(deps: ChangeListenerDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    this.#throttle = new BurstThrottle(deps.clock);
  }

  /** Pollers multiply their interval by this: more than 1 while the stream reports changes at once, less while it rests. */
  get intervalMultiplier(): number {
    if (this.#isResting) return Math.min(1, RESTING_POLL_MS / this.#deps.options.pollInterval);
    const hearsOfWork = this.#isHealthy && this.#stream?.request.work !== undefined;
    return hearsOfWork && !this.#deps.usesMongos ? HEALTHY_STREAM_MULTIPLIER : 1;
  }

  /** The jobs whose end the stream reports; none while it is not open. */
  get awaitedInStream(): ReadonlySet<string> {
    return (this.#isHealthy ? this.#stream?.request.awaited : undefined) ?? NO_JOBS;
  }

  /** Sets the jobs whose end the stream reports: none if that would be late. A stream that does not include all of them is opened again. */
  setAwaited(jobs: ReadonlySet<string>): void {
    // Polls find the end of a job sooner.
    if (this.#deps.usesMongos) return;
    this.#awaited = jobs;
    if (jobs.size === 0) {
      if (this.#unsubscribe === undefined) void this.stop();
      return;
    }
    super.start();
    // A stream that is being opened is not interrupted: its subscribers re-read when it is open, and then ask again.
    const included = this.awaitedInStream;
    if (this.#isHealthy && [...jobs].some((id) => !included.has(id))) this.#reopen();
  }

  subscribe(subscriber: ChangeSubscriber): void {
    this.#subscribers.push(subscriber);
  }

  /** Closes the stream: a saturated worker does not need it, and every stream costs the server. */
  rest(): void {
    if (this.#isResting) return;
    this.#isResting = true;
    this.#reopen();
    this.#notifyMissedChanges();
  }

  resume(): void {
    if (!this.#isResting) return;
    this.#isResting = false;
    this.wake();
  }

  override start(): void {
    if (this.#unsubscribe === undefined) {
      // The stream is filtered by the task types of this process.
      this.#unsubscribe = this.#deps.registry.onChange(() => this.#reopen());
      // It may be running for awaited jobs only.
      this.#stream?.closing.abort();
      this.wake();
    }
    super.start();
  }

  override async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    const stream = this.#stream;
    stream?.closing.abort();
    await super.stop();
    await this.#close(stream);
  }

  /** The next round opens a new stream, and the change stream that hangs closes when it can. */
  protected override onHungRound(): void {
    void this.#close(this.#stream).catch(() => undefined);
    this.#notifyMissedChanges();
  }

  /** Reads the next batch of the stream. */
  async runOnce(): Promise<number> {
    if (this.#isResting) {
      await this.#close(this.#stream);
      return RESTING_MS;
    }
    const stream = (this.#stream ??= this.#open());
    try {
      const { value: batch, done } = await stream.batches.next();
      if (done !== true && typeof batch === 'object') {
        for (const subscriber of this.#subscribers) subscriber.onChanges(batch);
        this.#throttle.record();
      }
      if (done === true || stream.closing.signal.aborted) {
        await this.#close(stream);
        return 0;
      }
      if (batch === 'open' && this.#stream === stream) {
        this.#isHealthy = true;
        this.#notifyMissedChanges();
      }
      // Changes in a burst are read together.
      return this.#throttle.wait;
    } catch (error) {
      const wasHealthy = this.#isHealthy;
      await this.#close(stream);
      if (wasHealthy) this.#notifyMissedChanges();
      if (this.#isUnavailable(error)) return RETRY_UNAVAILABLE_MS;
      throw error;
    }
  }

  /** A user who may only dispatch jobs and wait for them cannot open a stream. For a worker, that is an error. */
  #isUnavailable(error: unknown): boolean {
    const { code } = error as { code?: unknown };
    return code === NOT_A_REPLICA_SET || (code === UNAUTHORIZED && this.#unsubscribe === undefined);
  }

  #notifyMissedChanges(): void {
    for (const subscriber of this.#subscribers) subscriber.onMissedChanges();
  }

  #open(): Stream {
    const { store, registry, options } = this.#deps;
    const closing = new AbortController();
    const work = { queues: options.queues, taskTypes: registry.taskTypes };
    const request = { awaited: this.#awaited, ...(this.#unsubscribe !== undefined && { work }) };
    return { closing, request, batches: store.watchChanges(request, closing.signal) };
  }

  /** Closes the stream; the next round opens a new one, unless the listener rests. */
  #reopen(): void {
    if (this.#stream === undefined) return;
    this.#stream.closing.abort();
    this.wake();
  }

  async #close(stream: Stream | undefined): Promise<void> {
    if (stream === undefined) return;
    if (this.#stream === stream) {
      this.#stream = undefined;
      this.#isHealthy = false;
    }
    stream.closing.abort();
    // It waits for the read in progress, which may hang.
    await whenSettled(MAX_CLOSE_MS, stream.batches.return());
  }
}
