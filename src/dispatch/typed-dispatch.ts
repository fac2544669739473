import type { DispatchOptions } from '../config/dispatch-options.js';
import type { Handler } from '../worker/handler.js';

// Without a handler map, payloads are whatever the handlers take them for.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type AnyPayloads = Record<string, any>;

/** The payload may be left out where the handler map says it may be undefined. */
export type DispatchArguments<P> = undefined extends P
  ? [payload?: P, options?: DispatchOptions & AdHoc<P>]
  : [payload: P, options?: DispatchOptions & AdHoc<P>];

/** One job of `dispatchMany`, with the payload that the handler map has for its task type. */
export type DispatchRequest<P extends object = AnyPayloads> = {
  [T in keyof P & string]: { taskType: T; options?: DispatchOptions } & (undefined extends P[T]
    ? { payload?: P[T] }
    : { payload: P[T] });
}[keyof P & string];

export interface AdHoc<P> {
  /**
   * Registers a handler along with the job. Functions cannot be stored: the job runs in this process, or in
   * another that registers the same name; when this process is gone before, it waits for such a one.
   */
  handler?: Handler<P>;
}
