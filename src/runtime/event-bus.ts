import { EventEmitter } from 'eventemitter3';
import { didYouMean } from '../domain/did-you-mean.js';
import { ChronosError, redactError, toError } from '../domain/errors.js';
import { EVENT_NAMES, type EventName, type Operation, type SchedulerEvents } from '../domain/events.js';
import { isThenable } from '../domain/language.js';
import { type MeasurementName, type Measurements, publishMeasurement } from './measurements.js';

export type Listener<E extends EventName> = (event: SchedulerEvents[E]) => unknown;

type Guarded = (event: unknown) => void;

const JOB_END_EVENTS = ['job:complete', 'job:failed', 'job:cancelled', 'job:skipped', 'job:expired'] as const;

/**
 * The typed events of a Scheduler. In eventemitter3 a listener that throws stops `emit` and the listeners after it. Here
 * each listener is guarded: what it throws or rejects with becomes a `listener:error` event.
 */
export class EventBus {
  readonly workerId: string;
  readonly #emitter = new EventEmitter<Record<EventName, Guarded>>();
  readonly #guarded = new WeakMap<object, Map<EventName, Guarded>>();

  constructor(workerId: string) {
    this.workerId = workerId;
  }

  on<E extends EventName>(name: E, listener: Listener<E>): void {
    this.#emitter.on(name, this.#guard(name, listener));
  }

  once<E extends EventName>(name: E, listener: Listener<E>): void {
    this.#emitter.once(name, this.#guard(name, listener));
  }

  off<E extends EventName>(name: E, listener: Listener<E>): void {
    const guarded = this.#guarded.get(listener)?.get(name);
    if (guarded !== undefined) this.#emitter.off(name, guarded);
  }

  emit<E extends EventName>(name: E, event: SchedulerEvents[E]): void {
    this.#emitter.emit(name, event);
  }

  measure<M extends MeasurementName>(name: M, measurement: Measurements[M]): void {
    publishMeasurement(this.workerId, name, measurement);
  }

  /** Calls the listener with the id of every job that ended in this process. Returns a function that unsubscribes. */
  onJobEnd(listener: (jobId: string) => void): () => void {
    const onEnd = ({ jobId, willRetry = false }: { jobId: string; willRetry?: boolean }): void => {
      if (!willRetry) listener(jobId);
    };
    for (const name of JOB_END_EVENTS) this.on(name, onEnd);
    return () => {
      for (const name of JOB_END_EVENTS) this.off(name, onEnd);
    };
  }

  /** Emits `worker:error`. Always report errors with this: it redacts passwords, which the driver's errors may contain. */
  reportError(
    operation: Operation,
    thrown: unknown,
    { failures = 1, retryIn = 0, subject }: { failures?: number; retryIn?: number; subject?: string } = {},
  ): void {
    const error = redactError(toError(thrown));
    const about = subject === undefined ? {} : { subject };
    this.emit('worker:error', { operation, ...about, error, failures, retryIn });
  }

  #guard<E extends EventName>(name: E, listener: Listener<E>): Guarded {
    assertListener(name, listener);
    const byName = this.#guarded.get(listener) ?? new Map<EventName, Guarded>();
    this.#guarded.set(listener, byName);
    const known = byName.get(name);
    if (known !== undefined) return known;
    const guarded: Guarded = (event) => {
      try {
        const returned = listener(event as SchedulerEvents[E]);
        if (isThenable(returned)) returned.then(undefined, (error: unknown) => this.#report(name, error));
      } catch (error) {
        this.#report(name, error);
      }
    };
    byName.set(name, guarded);
    return guarded;
  }

  #report(name: EventName, thrown: unknown): void {
    // Reporting an error of a listener:error listener would cause an endless loop.
    if (name !== 'listener:error') this.emit('listener:error', { event: name, error: toError(thrown) });
  }
}

function assertListener(name: unknown, listener: unknown): void {
  if (!(EVENT_NAMES as readonly unknown[]).includes(name)) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `'${String(name)}' is not an event${didYouMean(String(name), EVENT_NAMES)}`,
    );
  }
  if (typeof listener !== 'function') {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `a listener of '${String(name)}' must be a function, got ${typeof listener}`,
    );
  }
}
