import { EventEmitter } from 'eventemitter3';
import { record } from '../config/readers.js';
import { Refused } from '../worker/refused.js';
import { ChronosError, toError } from '../domain/errors.js';
import { nameFault } from '../domain/names.js';
import { hint } from '../domain/nearest.js';
import type { HandlerFunction, JobContext } from '../worker/handler.js';
import { readPayload, sound } from './payload-readers.js';

export type ChannelListener = (data: unknown, job: JobContext) => unknown;

/** Puts its listener on the list. */
type Answer = (present: ChannelListener[]) => void;

/** The listeners of `event` jobs: a bus of its own, so that no job can forge an event of the scheduler. */
export class EventChannel {
  readonly #emitter = new EventEmitter<Record<string, Answer>>();
  readonly #answers = new WeakMap<ChannelListener, Answer>();

  on(name: string, listener: ChannelListener): void {
    this.#emitter.on(name, this.#answerOf(name, listener));
  }

  /** For one attempt of one job only. */
  once(name: string, listener: ChannelListener): void {
    this.#emitter.once(name, this.#answerOf(name, listener));
  }

  off(name: string, listener: ChannelListener): void {
    const answer = this.#answers.get(listener);
    if (answer !== undefined) this.#emitter.off(name, answer);
  }

  /** The names that have a listener. */
  get names(): string[] {
    return this.#emitter.eventNames();
  }

  /** The listeners of that name, in order; those of `once` are taken off. */
  take(name: string): ChannelListener[] {
    const present: ChannelListener[] = [];
    this.#emitter.emit(name, present);
    return present;
  }

  #answerOf(name: string, listener: ChannelListener): Answer {
    const fault = nameFault(name, false);
    if (fault !== undefined) throw new ChronosError('INVALID_ARGUMENT', `the name of an event ${fault}`);
    if (typeof listener !== 'function') {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `a listener of '${name}' must be a function, got ${typeof listener}`,
      );
    }
    const answer = this.#answers.get(listener) ?? ((present) => present.push(listener));
    this.#answers.set(listener, answer);
    return answer;
  }
}

const readEvent = record<{ event: string; data: unknown }>({
  event: sound((value) => nameFault(value, false)),
  data: (value) => value,
});

/** A handler that calls the listeners of an event, each with the data and the job, and waits for all of them. */
export function eventHandler(channel: EventChannel): HandlerFunction<unknown> {
  return async (payload, job) => {
    const { event, data = null } = readPayload(
      typeof payload === 'string' ? { event: payload } : payload,
      readEvent,
      'the name of an event, or { event, data }',
    );
    if (event === undefined) {
      throw new Refused('INVALID_PAYLOAD', 'payload.event is missing: set it to the name of an event');
    }
    const listeners = channel.take(event);
    if (listeners.length === 0) {
      throw new ChronosError(
        'EVENT_UNHEARD',
        `nobody listens to '${event}' in this process${hint(event, channel.names)}: ` +
          'add a listener before the worker starts',
      );
    }
    const settled = await Promise.allSettled(listeners.map(async (listener) => await listener(data, job)));
    const reasons = settled.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
    if (reasons.length > 1) {
      throw new AggregateError(
        reasons,
        `${reasons.length} of ${listeners.length} listeners of '${event}' failed, the first with: ${toError(reasons[0]).message}`,
      );
    }
    if (reasons.length === 1) throw reasons[0];
    return { listeners: listeners.length };
  };
}
