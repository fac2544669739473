import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { DispatchOptions } from '../config/dispatch-options.js';
import type { Handler, HandlerClass } from '../domain/job/handler.js';

// Without a handler map, payload types are unknown here: handlers declare them.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type AnyPayload = any;

/** The handler map of a Scheduler without one: any task type, any payload. */
export type AnyPayloads = Record<string, AnyPayload>;

/**
 * The handler map of every Scheduler that has no type argument. Add your task types by declaration merging, in as many
 * packages as you like: `declare module 'chronos-worker' { interface TaskMap { sendEmail: { to: string } } }`.
 */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface TaskMap {}

/** `TaskMap`, or any task type and payload if nothing was added to it. */
export type DefaultTasks = keyof TaskMap extends never ? AnyPayloads : TaskMap;

declare const TASK: unique symbol;

/**
 * An entry of a handler map that names its types: what is dispatched, what the handler returns, and what it receives if a
 * schema transforms the payload. There are no values of this type.
 */
export interface Task<Input = undefined, Result = unknown, Output = Input> {
  readonly [TASK]: { readonly input: Input; readonly result: Result; readonly output: Output };
}

/** An entry of a handler map whose types come from a schema: its input is dispatched, its output is what the handler receives. */
export type SchemaTask<S extends StandardSchemaV1, Result = unknown> = Task<
  StandardSchemaV1.InferInput<S>,
  Result,
  StandardSchemaV1.InferOutput<S>
>;

/** The name of a task type of the map. */
export type TaskName<M> = keyof M & string;

/** Any string if there is no map, else never. */
export type UntypedName<M> = string extends keyof M ? string : never;

/** A task type of the map, or a handler class. */
export type Target<M> = TaskName<M> | HandlerClass<never>;

/** The entry of the map, or the class itself: both tell the types of their jobs. */
export type EntryOf<M, T> = T extends keyof M ? M[T] : T;

/** What is dispatched. */
export type InputOf<E> = TypesOf<E>['input'];
/** What the handler receives. */
export type OutputOf<E> = TypesOf<E>['output'];
/** What the handler returns, and `handle.result()` resolves to. */
export type ResultOf<E> = TypesOf<E>['result'];

/** An entry is a `Task`, the type of a handler, or just the type of the payload. */
type TypesOf<E> =
  IsAny<E> extends true
    ? { input: AnyPayload; result: unknown; output: AnyPayload }
    : E extends Task<infer I, infer R, infer O>
      ? { input: I; result: R; output: O }
      : E extends (...args: infer A) => infer R
        ? FromHandler<A, R>
        : E extends { handle(...args: infer A): infer R }
          ? FromHandler<A, R>
          : E extends abstract new (...args: never[]) => { handle(...args: infer A): infer R }
            ? FromHandler<A, R>
            : E extends HandlerClass<never>
              ? { input: AnyPayload; result: unknown; output: AnyPayload }
              : { input: E; result: unknown; output: E };

interface FromHandler<A extends readonly unknown[], R> {
  input: A extends readonly [] ? undefined : A[0];
  result: Awaited<R>;
  output: A extends readonly [] ? undefined : A[0];
}

/** What is stored: a handler that returns nothing has the result null. */
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- what a function without `return` returns
export type StoredResult<R> = IsAny<R> extends true ? R : [R] extends [void | undefined] ? null : R;

type IsAny<T> = 0 extends 1 & T ? true : false;

/** A payload that is left out is stored as null. */
type IsOptional<P> = undefined extends P ? true : null extends P ? true : false;

/** The payload may be left out if it may be undefined or null. */
export type DispatchArguments<E> =
  IsOptional<InputOf<E>> extends true
    ? [payload?: InputOf<E>, options?: DispatchOptions & AdHoc<OutputOf<E>>]
    : [payload: InputOf<E>, options?: DispatchOptions & AdHoc<OutputOf<E>>];

type PayloadField<E> =
  IsOptional<InputOf<E>> extends true ? { payload?: InputOf<E> } : { payload: InputOf<E> };

/** A task type and a payload that fits it. The payload may be left out if it may be undefined or null. */
export type TaskPayload<M extends object = AnyPayloads> = {
  [T in TaskName<M>]: { taskType: T } & PayloadField<M[T]>;
}[TaskName<M>];

/** One job of `dispatchMany`, with the payload type of its task type. */
export type DispatchRequest<M extends object = AnyPayloads> = TaskPayload<M> & { options?: DispatchOptions };

/** For a dispatch that brings its own handler. */
export interface AdHoc<P> {
  /**
   * Also registers this handler. It is not stored: the job runs in this process, or in another one that registers a
   * handler for the same task type.
   */
  handler?: Handler<P>;
}
