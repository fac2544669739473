import { EventEmitter } from 'eventemitter3';
import { ChronosError, toError } from '../domain/errors.js';
import { EVENT_NAMES, type EventName, type SchedulerEvents } from '../domain/events.js';
import { hint } from '../domain/nearest.js';

export type Listener<E extends EventName> = (event: SchedulerEvents[E]) => unknown;

type Guarded = (event: unknown) => void;

/**
 * The typed events of a Scheduler. eventemitter3 lets a listener that throws stop `emit` and the listeners after
 * it; here each one is guarded, and what it throws or rejects with becomes a `listener:error` event.
 */
export class EventBus {
  readonly #emitter = new EventEmitter<Record<EventName, Guarded>>();
  readonly #guarded = new WeakMap<object, Map<EventName, Guarded>>();

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

  #guard<E extends EventName>(name: E, listener: Listener<E>): Guarded {
    check(name, listener);
    const byName = this.#guarded.get(listener) ?? new Map<EventName, Guarded>();
    this.#guarded.set(listener, byName);
    const known = byName.get(name);
    if (known !== undefined) return known;
    const guarded: Guarded = (event) => {
      try {
        const returned = listener(event as SchedulerEvents[E]);
        if (isThenable(returned))
          returned.then(undefined, (error: unknown) => {
            this.#report(name, error);
          });
      } catch (error) {
        this.#report(name, error);
      }
    };
    byName.set(name, guarded);
    return guarded;
  }

  #report(name: EventName, thrown: unknown): void {
    // A listener of listener:error that throws has nobody left to tell.
    if (name !== 'listener:error') this.emit('listener:error', { event: name, error: toError(thrown) });
  }
}

function check(name: unknown, listener: unknown): void {
  if (!(EVENT_NAMES as readonly unknown[]).includes(name)) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `'${String(name)}' is not an event${hint(String(name), EVENT_NAMES)}`,
    );
  }
  if (typeof listener !== 'function') {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `a listener of '${String(name)}' must be a function, got ${typeof listener}`,
    );
  }
}

/** Promises of another realm or library are no instances of Promise. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
