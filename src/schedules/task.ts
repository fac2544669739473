import { runShell, readShellPayload, type ShellCommand } from '../built-in/shell.js';
import { inheritedEnvironment } from '../config/process.js';
import { ChronosError } from '../domain/errors.js';
import { checkTaskType } from '../domain/names.js';
import { hint } from '../domain/nearest.js';
import type { HandlerFunction } from '../worker/handler.js';
import { isHandlerClass, taskTypeOf, type HandlerRegistry } from '../worker/handler-registry.js';

/** What a definition runs. `label` is what it is called when nobody names it. */
export type Task =
  | { readonly kind: 'own'; readonly label: string }
  | { readonly kind: 'handler'; readonly label: string; readonly handler: unknown }
  | { readonly kind: 'closure'; readonly label: string; readonly handler: unknown; readonly source: string }
  | { readonly kind: 'taskType'; readonly label: string; readonly taskType: string }
  | { readonly kind: 'shell'; readonly label: string; readonly command: ShellCommand };

/** Task types of application commands: `registerCommand('app:report', …)` is one under this prefix. */
export const COMMAND_PREFIX = 'command:';

/** What `schedule(name, handler)` runs. */
export function taskFor(name: string, handler: unknown): Task {
  if (handler === undefined) return { kind: 'own', label: name };
  return typeof handler === 'string'
    ? taskOf(handler, undefined).task
    : { kind: 'handler', label: name, handler };
}

/** What `define(handler, payload)` runs, and with which payload. */
export function taskOf(handler: unknown, payload: unknown): { task: Task; payload: unknown } {
  if (typeof handler === 'function') {
    const label = isHandlerClass(handler) ? taskTypeOf(handler) : handler.name || 'function';
    return { task: { kind: 'handler', label, handler }, payload };
  }
  switch (handler) {
    case 'closure':
      return { task: closure(payload), payload: null };
    case 'shell':
      // Bound here, in code: nothing that is stored can change which program runs.
      return { task: { kind: 'shell', label: 'shell', command: readShellPayload(payload) }, payload };
    case 'command': {
      const { command, args } = readCommand(payload);
      return {
        task: { kind: 'taskType', label: 'command', taskType: COMMAND_PREFIX + command },
        payload: args,
      };
    }
    default:
      checkTaskType(handler);
      return { task: { kind: 'taskType', label: handler, taskType: handler }, payload };
  }
}

/** Makes this process able to run the definition's jobs. Throws HANDLER_INVALID when it has nothing to run them with. */
export function registerTask(registry: HandlerRegistry, name: string, task: Task): void {
  switch (task.kind) {
    case 'own':
      requireHandler(registry, name, name);
      return;
    case 'handler':
    case 'closure':
      registry.register(name, task.handler);
      return;
    case 'taskType': {
      requireHandler(registry, name, task.taskType);
      if (task.taskType !== name) registry.register(name, delegate(registry, task.taskType));
      return;
    }
    case 'shell': {
      const { command } = task;
      registry.register(name, (_: unknown, job: Parameters<HandlerFunction<unknown>>[1]) =>
        runShell(command, job, inheritedEnvironment()),
      );
    }
  }
}

function delegate(registry: HandlerRegistry, taskType: string): HandlerFunction<unknown> {
  return (payload, job) => {
    requireHandler(registry, job.taskType, taskType);
    return registry.get(taskType)?.run(payload, job);
  };
}

function requireHandler(registry: HandlerRegistry, name: string, taskType: string): void {
  if (registry.get(taskType) !== undefined) return;
  const isCommand = taskType.startsWith(COMMAND_PREFIX);
  const known = registry.taskTypes;
  throw new ChronosError(
    isCommand ? 'COMMAND_UNKNOWN' : 'HANDLER_INVALID',
    isCommand
      ? `schedule '${name}' runs the command '${taskType.slice(COMMAND_PREFIX.length)}', which is not registered: use registerCommand()${hint(taskType, known)}`
      : `schedule '${name}' has no handler: pass one to schedule(), or register one for '${taskType}'${hint(taskType, known)}`,
  );
}

function closure(handler: unknown): Task {
  if (typeof handler !== 'function') {
    throw new ChronosError(
      'HANDLER_INVALID',
      `define('closure', fn) takes a function, got ${typeof handler}`,
    );
  }
  return { kind: 'closure', label: 'closure', handler, source: Function.prototype.toString.call(handler) };
}

function readCommand(payload: unknown): { command: string; args: unknown } {
  const { command, args = null } = (typeof payload === 'string' ? { command: payload } : (payload ?? {})) as {
    command?: unknown;
    args?: unknown;
  };
  if (typeof command !== 'string' || command === '') {
    throw new ChronosError(
      'INVALID_PAYLOAD',
      "define('command', …) takes the name of a command, or { command: 'app:report', args: { … } }",
    );
  }
  return { command, args };
}
