import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ChronosError, toError } from '../domain/errors.js';
import type { Scheduler } from '../scheduler.js';
import { isChronosError } from './exit.js';

const EXPECTED =
  'its exports must be handlers by task type, or a default function that receives the scheduler';
const OWN_CODE = new URL('..', import.meta.url).href;

/** The module exports handlers by task type, an object of handlers as default, or a default function that receives the scheduler. */
export async function loadHandlers(scheduler: Scheduler, path: string): Promise<void> {
  const { default: main, ...named } = await load(path);
  try {
    if (typeof main === 'function') {
      await (main as (scheduler: Scheduler) => unknown)(scheduler);
      return;
    }
    const handlers = Object.entries({ ...named, ...(main as Record<string, unknown> | undefined) });
    if (handlers.length === 0) throw new ChronosError('HANDLER_INVALID', 'it exports nothing');
    for (const [taskType, handler] of handlers)
      scheduler.registerHandler(taskType, handler as (payload: unknown) => unknown);
  } catch (cause) {
    const hint = isChronosError(cause) && cause.code === 'HANDLER_INVALID' ? `; ${EXPECTED}` : '';
    throw invalidModule(`HANDLERS: ${path} did not register its handlers: ${describe(cause)}${hint}`, cause);
  }
}

async function load(path: string): Promise<Record<string, unknown>> {
  const file = resolve(path);
  if (!existsSync(file)) throw invalidModule(`HANDLERS: there is no module ${path} (${file})`);
  return import(pathToFileURL(file).href).catch((cause: unknown) => {
    // A SyntaxError of an imported module does not contain its line.
    const hint = cause instanceof SyntaxError ? ` (\`node --check ${path}\` shows where)` : '';
    throw invalidModule(`HANDLERS: ${path} cannot be loaded: ${describe(cause)}${hint}`, cause);
  }) as Promise<Record<string, unknown>>;
}

function invalidModule(message: string, cause?: unknown): ChronosError {
  return new ChronosError('INVALID_ENVIRONMENT', message, { cause });
}

/** The message, and the line of the application's code that threw the error. */
function describe(thrown: unknown): string {
  const { message, stack = '' } = toError(thrown);
  const places = [...stack.matchAll(/(file:\/\/[^\s()]+?):(\d+)(?::\d+)?\)?$/gm)];
  const place = places.find(([, url = '']) => !url.startsWith(OWN_CODE) && !url.includes('/node_modules/'));
  const [, url, line] = place ?? [];
  return url === undefined ? message : `${message} (${relative('', fileURLToPath(url))}:${line})`;
}
