import { EventEmitter } from 'eventemitter3';
import { didYouMean } from '../../domain/did-you-mean.js';
import { ChronosError, toError } from '../../domain/errors.js';
import { anything, name as eventName, object, parse, requiring } from '../../domain/validation.js';
import type { HandlerFunction, JobContext } from '../handler.js';
import { parsePayload } from '../payload.js';

export type ChannelListener = (data: unknown, job: JobContext) => unknown;

type Collector = (found: ChannelListener[]) => void;

/** The listeners of `event` jobs. Separate from the scheduler's own events, so that no job can forge one of those. */
export class EventChannel {
  readonly #emitter = new EventEmitter<Record<string, Collector>>();
  readonly #collectors = new WeakMap<ChannelListener, Collector>();

  on(name: string, listener: ChannelListener): void {
    this.#emitter.on(name, this.#collectorOf(name, listener));
  }

  /** For one attempt of one job only. */
  once(name: string, listener: ChannelListener): void {
    this.#emitter.once(name, this.#collectorOf(name, listener));
  }

  off(name: string, listener: ChannelListener): void {
    const collector = this.#collectors.get(listener);
    if (collector !== undefined) this.#emitter.off(name, collector);
  }

  /** The names that have a listener. */
  get names(): string[] {
    return this.#emitter.eventNames();
  }

  /** The listeners of an event, in order; those added by `once` are removed. */
  take(name: string): ChannelListener[] {
    const found: ChannelListener[] = [];
    this.#emitter.emit(name, found);
    return found;
  }

  /** The emitter does not call the listener but a function that adds it to a list: the handler has to await it. */
  #collectorOf(name: string, listener: ChannelListener): Collector {
    parse(eventName, name, 'the name of an event', 'INVALID_ARGUMENT');
    if (typeof listener !== 'function') {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `a listener of '${name}' must be a function, got ${typeof listener}`,
      );
    }
    const collector = this.#collectors.get(listener) ?? ((found) => found.push(listener));
    this.#collectors.set(listener, collector);
    return collector;
  }
}

const eventPayload = requiring(
  object<{ event: string; data: unknown }>({ event: eventName, data: anything }),
  {
    event: 'set it to the name of an event',
  },
);

/** Calls the listeners of an event, each with the data and the job, and waits for all of them. */
export function eventHandler(channel: EventChannel): HandlerFunction<unknown> {
  return async (payload, job) => {
    const { event, data = null } = parsePayload(
      eventPayload,
      typeof payload === 'string' ? { event: payload } : payload,
      'the name of an event, or { event, data }',
    );
    const listeners = channel.take(event);
    if (listeners.length === 0) {
      throw new ChronosError(
        'EVENT_UNHEARD',
        `no listener for '${event}' in this process${didYouMean(event, channel.names)}: ` +
          'add one before the worker starts',
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
