import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Operation } from '../domain/events.js';

/**
 * What a worker measures about itself. Each is published on the channel `chronos:<name>` of `node:diagnostics_channel`;
 * a message also has the `workerId`, because several workers of one process share the channels.
 */
export interface Measurements {
  /** A claim asked for `wanted` due jobs, found `found` and got `claimed` of them. */
  claim: { wanted: number; found: number; claimed: number };
  /** Locks were renewed by one statement. */
  renewal: { locks: number };
  /** A round of a background service, or a pass, succeeded; `duration` in milliseconds. */
  round: { operation: Operation; duration: number };
  /** Plans were stored for `stored` schedules; other workers were first for `conflicts`, and MongoDB rejected `rejected`. */
  plan: { stored: number; conflicts: number; rejected: number };
  /** Jobs of due schedules were inserted; `failed` ones are retried. */
  enqueue: { inserted: number; failed: number };
}

/** The name of a measurement; its channel is `chronos:<name>`. */
export type MeasurementName = keyof Measurements;

const CHANNELS = {
  claim: channel('chronos:claim'),
  renewal: channel('chronos:renewal'),
  round: channel('chronos:round'),
  plan: channel('chronos:plan'),
  enqueue: channel('chronos:enqueue'),
} as const satisfies Record<MeasurementName, unknown>;

/** Costs nothing if nobody subscribes. */
export function publishMeasurement<M extends MeasurementName>(
  workerId: string,
  name: M,
  measurement: Measurements[M],
): void {
  const { hasSubscribers } = CHANNELS[name];
  if (hasSubscribers) CHANNELS[name].publish({ workerId, ...measurement });
}

/** Calls the listener with the measurements of one worker. Returns a function that unsubscribes. */
export function onMeasurement<M extends MeasurementName>(
  workerId: string,
  name: M,
  listener: (measurement: Measurements[M]) => void,
): () => void {
  const onMessage = (message: unknown): void => {
    const { workerId: publisher, ...measurement } = message as Measurements[M] & { workerId: string };
    if (publisher === workerId) listener(measurement as unknown as Measurements[M]);
  };
  const channelName = `chronos:${name}`;
  subscribe(channelName, onMessage);
  return () => unsubscribe(channelName, onMessage);
}
