import { EventEmitter } from 'eventemitter3';
import { didYouMean } from '../domain/did-you-mean.js';
import { ChronosError, describeValue, redactError, toError } from '../domain/errors.js';
import { EVENT_NAMES, type EventName, type Operation, type SchedulerEvents } from '../domain/events.js';
import { isThenable } from '../domain/language.js';
import { type MeasurementName, type Measurements, publishMeasurement } from './measurements.js';

export type Listener<E extends EventName> = (event: SchedulerEvents[E]) => unknown;

type Guarded = (event: unknown) => void;

interface EndedJob {
  jobId: string;
  taskType: string;
  willRetry?: boolean;
}

const JOB_END_EVENTS = [
  ...(['job:complete', 'job:failed', 'job:cancelled'] as const),
  ...(['job:skipped', 'job:expired', 'job:invalid'] as const),
] as const;

/**
 * The typed events of a Scheduler. In eventemitter3 a listener that throws stops `emit` and the listeners after it. Here
 * each listener is guarded: what it throws or rejects with becomes a `listener:error` event.
 */
export class EventBus {
  readonly workerId: string;
  readonly #emitter = new EventEmitter<Record<EventName, Guarded>>();
  readonly #guarded = new WeakMap<object, Map<EventName, Guarded>>();
  /** Errors of each operation that were reported since it last succeeded. */
  readonly #failures = new Map<Operation, number>();

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

  /** Calls the listener for every job that ended in this process. Returns a function that unsubscribes. */
  onJobEnd(listener: (jobId: string, taskType: string) => void): () => void {
    const onEnd = ({ jobId, taskType, willRetry = false }: EndedJob): void => {
      if (!willRetry) listener(jobId, taskType);
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

  /** Reports an error of an operation; `reportSuccess` with the same operation reports that it is over. */
  reportFailure(operation: Operation, thrown: unknown, retryIn = 0): void {
    const failures = (this.#failures.get(operation) ?? 0) + 1;
    this.#failures.set(operation, failures);
    this.reportError(operation, thrown, { failures, retryIn });
  }

  /** Emits `worker:recovered` if the operation failed before. */
  reportSuccess(operation: Operation): void {
    if (this.#failures.size === 0) return;
    const failures = this.#failures.get(operation);
    if (failures === undefined) return;
    this.#failures.delete(operation);
    this.emit('worker:recovered', { operation, failures });
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
    const hint = typeof name === 'string' ? didYouMean(name, EVENT_NAMES) : '';
    throw new ChronosError('INVALID_ARGUMENT', `${describeValue(name)} is not an event${hint}`);
  }
  if (typeof listener !== 'function') {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `a listener of '${String(name)}' must be a function, got ${typeof listener}`,
    );
  }
}
