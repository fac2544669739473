import { ChronosError } from '../domain/errors.js';
import type { HandlerFunction } from '../domain/job/handler.js';
import { tryOr } from '../domain/language.js';

/**
 * Turns a registered function, class or object into a function. Of a class it calls the static `handle`, or else `handle`
 * or `execute` of a new instance per job.
 */
export function toHandlerFunction(taskType: string, handler: unknown): HandlerFunction<unknown> {
  // A method call, so that `this` is the class or the object.
  if (hasMethod(handler, 'handle')) return (payload, job) => handler.handle(payload, job);
  if (isHandlerClass(handler)) return fromInstances(handler as new () => unknown);
  if (typeof handler === 'function' && !isClassSyntax(handler)) return handler as HandlerFunction<unknown>;
  throw new ChronosError(
    'HANDLER_INVALID',
    `the handler for '${taskType}' must be a function, a class with handle(payload, job) (static or not) or execute(job), or an object with handle(payload, job)`,
  );
}

function fromInstances(handlerClass: new () => unknown): HandlerFunction<unknown> {
  return async (payload, job) => {
    const instance = new handlerClass();
    if (hasMethod(instance, 'handle')) return instance.handle(payload, job);
    if (hasMethod(instance, 'execute') && (await instance.execute(job)) !== false) return undefined;
    throw new ChronosError('JOB_RETURNED_FALSE', `execute() of '${job.taskType}' returned false`);
  };
}

/** True for a class that `dispatch` and `registerHandler` accept instead of a task type. */
export function isHandlerClass(value: unknown): boolean {
  if (typeof value !== 'function') return false;
  const prototype = tryOr((): unknown => value.prototype, undefined);
  return hasMethod(value, 'handle') || hasMethod(prototype, 'handle') || hasMethod(prototype, 'execute');
}

/** The task type of a class: its static `taskType`, else its name. */
export function taskTypeOf(handlerClass: unknown): string {
  const { taskType, name } = handlerClass as { taskType?: unknown; name?: unknown };
  const type = taskType ?? name;
  if (typeof type !== 'string' || type === '') {
    throw new ChronosError(
      'HANDLER_INVALID',
      'a handler class needs a name or a static taskType; this one has neither',
    );
  }
  return type;
}

function isClassSyntax(value: object): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value));
}

export function hasMethod<M extends string>(
  value: unknown,
  method: M,
): value is Record<M, (...args: unknown[]) => unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    tryOr(() => typeof (value as Record<string, unknown>)[method] === 'function', false)
  );
}
