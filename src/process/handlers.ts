import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ChronosError, toError } from '../domain/errors.js';
import type { Scheduler } from '../scheduler.js';
import { isChronosError } from './exit.js';

const WANTED = 'its exports must be handlers by task type, or a default function that receives the scheduler';
const OWN_CODE = new URL('..', import.meta.url).href;

/** A module exports handlers by task type, or a default function (or object of handlers) that gets the scheduler. */
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
    const hint = isChronosError(cause) && cause.code === 'HANDLER_INVALID' ? `; ${WANTED}` : '';
    throw fault(`HANDLERS: ${path} did not register its handlers: ${told(cause)}${hint}`, cause);
  }
}

async function load(path: string): Promise<Record<string, unknown>> {
  const file = resolve(path);
  if (!existsSync(file)) throw fault(`HANDLERS names a module that is not there: ${path} (${file})`);
  return import(pathToFileURL(file).href).catch((cause: unknown) => {
    // The engine keeps to itself where it stands; node says it only of a program.
    const hint = cause instanceof SyntaxError ? ` (\`node --check ${path}\` shows where)` : '';
    throw fault(`HANDLERS names a module that cannot be loaded: ${path}: ${told(cause)}${hint}`, cause);
  }) as Promise<Record<string, unknown>>;
}

function fault(message: string, cause?: unknown): ChronosError {
  return new ChronosError('INVALID_ENVIRONMENT', message, { cause });
}

/** The message, and the line of the module, or of one it imports, that it comes from. */
function told(thrown: unknown): string {
  const { message, stack = '' } = toError(thrown);
  const places = [...stack.matchAll(/(file:\/\/[^\s()]+?):(\d+)(?::\d+)?\)?$/gm)];
  const place = places.find(([, url = '']) => !url.startsWith(OWN_CODE) && !url.includes('/node_modules/'));
  const [, url, line] = place ?? [];
  return url === undefined ? message : `${message} (${relative('', fileURLToPath(url))}:${line})`;
}
