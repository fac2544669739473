import type { ResolvedOptions } from '../../config/options.js';
import { inheritedEnvironment } from '../../config/process-env.js';
import { didYouMean } from '../../domain/did-you-mean.js';
import { ChronosError } from '../../domain/errors.js';
import { assertCommandName, assertTaskType } from '../../domain/identifiers.js';
import { tryOr } from '../../domain/language.js';
import { jsonText } from '../../domain/text.js';
import type { ShellCommand } from '../../handlers/built-in/process-group.js';
import { parseShellPayload, runShell } from '../../handlers/built-in/shell.js';
import { hasMethod, isHandlerClass, taskTypeOf } from '../../handlers/handler-function.js';
import type { HandlerRegistry } from '../../handlers/handler-registry.js';
import type { JobContext } from '../../domain/job/handler.js';

/** The built-in handlers that `define()` accepts by name. */
export type BuiltIn = 'command' | 'shell' | 'url' | 'event' | 'closure';

/** What a definition runs. The generated name of an unnamed definition starts with `label`. */
export type HandlerSource =
  | { readonly kind: 'own'; readonly label: string }
  | { readonly kind: 'handler'; readonly label: string; readonly handler: unknown }
  | { readonly kind: 'closure'; readonly label: string; readonly handler: unknown; readonly source: string }
  | { readonly kind: 'taskType'; readonly label: string; readonly taskType: string }
  | { readonly kind: 'shell'; readonly label: string; readonly command: ShellCommand };

/** `registerCommand('app:report', …)` registers the task type `command:app:report`. */
const COMMAND_PREFIX = 'command:';

/** Registers a function for `define('command', name)`. */
export function registerCommand(registry: HandlerRegistry, name: string, command: unknown): void {
  assertCommandName(name);
  registry.register(`${COMMAND_PREFIX}${name}`, command);
}

/** What `schedule(name, handler)` runs. */
export function sourceForSchedule(name: string, handler: unknown): HandlerSource {
  if (handler === undefined) return { kind: 'own', label: name };
  if (handler === 'shell' || handler === 'command' || handler === 'closure') {
    throw new ChronosError(
      'INVALID_SCHEDULE',
      `schedule('${name}', '${handler}') has nothing to run: use define('${handler}', …).named('${name}')`,
    );
  }
  return typeof handler === 'string'
    ? sourceForDefine(handler, undefined).task
    : { kind: 'handler', label: name, handler };
}

/** What `define(handler, payload)` runs, and with which payload. */
export function sourceForDefine(
  handler: unknown,
  payload: unknown,
): { task: HandlerSource; payload: unknown } {
  if (typeof handler === 'function') {
    // A function without a name is identified by its code.
    const label = isHandlerClass(handler) ? taskTypeOf(handler) : tryOr(() => handler.name, '');
    return { task: label === '' ? closure(handler) : { kind: 'handler', label, handler }, payload };
  }
  if (typeof handler === 'object' && handler !== null) {
    if (!hasMethod(handler, 'handle')) {
      throw new ChronosError(
        'HANDLER_INVALID',
        'define(): an object must have a method handle(payload, job)',
      );
    }
    return { task: { kind: 'handler', label: 'object', handler }, payload };
  }
  switch (handler) {
    case 'closure':
      return { task: closure(payload), payload: null };
    case 'shell':
      // The command is bound here, in code: a change of the stored payload cannot make it run another program.
      return { task: { kind: 'shell', label: 'shell', command: parseShellPayload(payload) }, payload };
    case 'command': {
      const { command, args } = readCommand(payload);
      return {
        task: { kind: 'taskType', label: 'command', taskType: COMMAND_PREFIX + command },
        payload: args,
      };
    }
    default:
      assertTaskType(handler);
      return { task: { kind: 'taskType', label: handler, taskType: handler }, payload };
  }
}

/** The task type whose handler runs the jobs of the definition; undefined if it has its own handler. */
export function handlerTaskType(task: HandlerSource): string | undefined {
  return task.kind === 'taskType' ? task.taskType : undefined;
}

/** Registers the handler that is part of the definition, if there is one. */
export function registerHandler(
  registry: HandlerRegistry,
  name: string,
  task: HandlerSource,
  { shellInheritEnv }: Pick<ResolvedOptions, 'shellInheritEnv'>,
): void {
  if (task.kind === 'handler' || task.kind === 'closure') registry.register(name, task.handler);
  if (task.kind === 'shell') {
    const { command } = task;
    registry.register(name, (_: unknown, job: JobContext) =>
      runShell(command, job, inheritedEnvironment(shellInheritEnv)),
    );
  }
}

/** The error to report if this process has no handler for the jobs of the definition. */
export function findMissingHandler(
  registry: HandlerRegistry,
  name: string,
  task: HandlerSource,
): ChronosError | undefined {
  if (registry.get(name) !== undefined) return undefined;
  const taskType = handlerTaskType(task) ?? name;
  const known = registry.taskTypes;
  if (taskType.startsWith(COMMAND_PREFIX)) {
    const command = taskType.slice(COMMAND_PREFIX.length);
    const commands = known
      .filter((type) => type.startsWith(COMMAND_PREFIX))
      .map((type) => type.slice(COMMAND_PREFIX.length));
    return new ChronosError(
      'COMMAND_UNKNOWN',
      `schedule '${name}' runs the command '${command}', which is not registered: use registerCommand()${didYouMean(command, commands)}`,
    );
  }
  return new ChronosError(
    'HANDLER_INVALID',
    `schedule '${name}' has no handler: pass one to schedule(), or register one for '${taskType}'${didYouMean(taskType, known)}`,
  );
}

function closure(handler: unknown): HandlerSource {
  if (typeof handler !== 'function') {
    throw new ChronosError(
      'HANDLER_INVALID',
      `define('closure', fn) takes a function, got ${typeof handler}`,
    );
  }
  return { kind: 'closure', label: 'closure', handler, source: Function.prototype.toString.call(handler) };
}

function readCommand(payload: unknown): { command: string; args: unknown } {
  const input = typeof payload === 'string' ? { command: payload } : (payload ?? {});
  const { command, args = null, ...more } = input as Record<string, unknown>;
  if (typeof command !== 'string' || command === '' || Object.keys(more).length > 0) {
    throw new ChronosError(
      'INVALID_PAYLOAD',
      `define('command', …) takes the name of a command, or { command: 'app:report', args: { … } }, got ${jsonText(payload)}`,
    );
  }
  return { command, args };
}
