import { runShell, readShellPayload, type ShellCommand } from '../built-in/shell.js';
import { inheritedEnvironment } from '../config/process.js';
import { ChronosError } from '../domain/errors.js';
import { checkTaskType } from '../domain/names.js';
import { hint } from '../domain/nearest.js';
import { jsonText } from '../domain/text.js';
import type { JobContext } from '../worker/handler.js';
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
  if (handler === 'shell' || handler === 'command' || handler === 'closure') {
    throw new ChronosError(
      'INVALID_SCHEDULE',
      `schedule('${name}', '${handler}') does not say what to run: use define('${handler}', …).named('${name}')`,
    );
  }
  return typeof handler === 'string'
    ? taskOf(handler, undefined).task
    : { kind: 'handler', label: name, handler };
}

/** What `define(handler, payload)` runs, and with which payload. */
export function taskOf(handler: unknown, payload: unknown): { task: Task; payload: unknown } {
  if (typeof handler === 'function') {
    // Without a name of its own there is nothing but its code to tell it by.
    if (!isHandlerClass(handler) && handler.name === '') return { task: closure(handler), payload };
    const label = isHandlerClass(handler) ? taskTypeOf(handler) : handler.name;
    return { task: { kind: 'handler', label, handler }, payload };
  }
  if (typeof handler === 'object' && handler !== null) {
    if (typeof (handler as { handle?: unknown }).handle !== 'function') {
      throw new ChronosError(
        'HANDLER_INVALID',
        'define() takes an object only when it has handle(payload, job)',
      );
    }
    return { task: { kind: 'handler', label: 'object', handler }, payload };
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

/** The task type whose handler runs the definition's jobs; undefined for its own name. */
export function handlerOf(task: Task): string | undefined {
  return task.kind === 'taskType' ? task.taskType : undefined;
}

/** Registers the handler that a definition brings along. */
export function registerTask(registry: HandlerRegistry, name: string, task: Task): void {
  if (task.kind === 'handler' || task.kind === 'closure') registry.register(name, task.handler);
  if (task.kind === 'shell') {
    const { command } = task;
    registry.register(name, (_: unknown, job: JobContext) => runShell(command, job, inheritedEnvironment()));
  }
}

/** Throws when this process has nothing to run the definition's jobs with. */
export function requireHandler(registry: HandlerRegistry, name: string, task: Task): void {
  if (registry.get(name) !== undefined) return;
  const taskType = handlerOf(task) ?? name;
  const known = registry.taskTypes;
  if (taskType.startsWith(COMMAND_PREFIX)) {
    const command = taskType.slice(COMMAND_PREFIX.length);
    const commands = known
      .filter((type) => type.startsWith(COMMAND_PREFIX))
      .map((type) => type.slice(COMMAND_PREFIX.length));
    throw new ChronosError(
      'COMMAND_UNKNOWN',
      `schedule '${name}' runs the command '${command}', which is not registered: use registerCommand()${hint(command, commands)}`,
    );
  }
  throw new ChronosError(
    'HANDLER_INVALID',
    `schedule '${name}' has no handler: pass one to schedule(), or register one for '${taskType}'${hint(taskType, known)}`,
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
  const given = (typeof payload === 'string' ? { command: payload } : (payload ?? {})) as Record<
    string,
    unknown
  >;
  const { command, args = null, ...more } = given;
  if (typeof command !== 'string' || command === '' || Object.keys(more).length > 0) {
    throw new ChronosError(
      'INVALID_PAYLOAD',
      `define('command', …) takes the name of a command, or { command: 'app:report', args: { … } }, got ${jsonText(payload)}`,
    );
  }
  return { command, args };
}
