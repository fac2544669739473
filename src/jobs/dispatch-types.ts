import type { DispatchOptions } from '../config/dispatch-options.js';
import type { Handler } from '../domain/job/handler.js';

// Without a handler map, payload types are unknown here: handlers declare them.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type AnyPayload = any;

/** The handler map of a Scheduler without one: any task type, any payload. */
export type AnyPayloads = Record<string, AnyPayload>;

/** The payload is optional if the handler map allows undefined. */
export type DispatchArguments<P> = undefined extends P
  ? [payload?: P, options?: DispatchOptions & AdHoc<P>]
  : [payload: P, options?: DispatchOptions & AdHoc<P>];

/** One job of `dispatchMany`, with the payload type of its task type. */
export type DispatchRequest<P extends object = AnyPayloads> = {
  [T in keyof P & string]: { taskType: T; options?: DispatchOptions } & (undefined extends P[T]
    ? { payload?: P[T] }
    : { payload: P[T] });
}[keyof P & string];

/** For a dispatch that brings its own handler. */
export interface AdHoc<P> {
  /**
   * Also registers this handler. It is not stored: the job runs in this process, or in another one that registers a
   * handler for the same task type.
   */
  handler?: Handler<P>;
}
