import { didYouMean } from '../../domain/did-you-mean.js';
import { ChronosError, toError } from '../../domain/errors.js';
import { anything, fn, name as eventName, object, parse, requiring } from '../../domain/validation.js';
import type { HandlerFunction, JobContext } from '../../domain/job/handler.js';
import { parsePayload } from '../payload.js';

/** A listener of `event` jobs; it is called with their data. */
export type ChannelListener = (data: unknown, job: JobContext) => unknown;

interface AddedListener {
  readonly listener: ChannelListener;
  readonly once: boolean;
}

/** The listeners of `event` jobs. Separate from the scheduler's own events, so that no job can forge one of those. */
export class EventChannel {
  readonly #added = new Map<string, AddedListener[]>();

  on(name: string, listener: ChannelListener): void {
    this.#add(name, listener, false);
  }

  /** For one attempt of one job only. */
  once(name: string, listener: ChannelListener): void {
    this.#add(name, listener, true);
  }

  off(name: string, listener: ChannelListener): void {
    this.#keep(name, (added) => added.listener !== listener);
  }

  /** The events that have a listener. */
  get names(): string[] {
    return [...this.#added.keys()];
  }

  /** The listeners of an event, in order. Removes those added by `once`. */
  take(name: string): ChannelListener[] {
    const listeners = this.#added.get(name)?.map(({ listener }) => listener) ?? [];
    this.#keep(name, ({ once }) => !once);
    return listeners;
  }

  #add(name: string, listener: ChannelListener, once: boolean): void {
    parse(eventName, name, 'the name of an event', 'INVALID_ARGUMENT');
    parse(fn(), listener, `the listener of '${name}'`, 'INVALID_ARGUMENT');
    this.#added.set(name, [...(this.#added.get(name) ?? []), { listener, once }]);
  }

  #keep(name: string, isKept: (added: AddedListener) => boolean): void {
    const kept = this.#added.get(name)?.filter(isKept) ?? [];
    if (kept.length > 0) this.#added.set(name, kept);
    else this.#added.delete(name);
  }
}

const payloadFields = object<{ event: string; data: unknown }>({ event: eventName, data: anything });
const eventPayload = requiring(payloadFields, { event: 'set it to the name of an event' });

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
