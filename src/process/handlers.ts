import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ChronosError } from '../domain/errors.js';
import type { Scheduler } from '../scheduler.js';

/** A module exports handlers by task type, or a default function (or object of handlers) that gets the scheduler. */
export async function loadHandlers(scheduler: Scheduler, path: string): Promise<void> {
  const module = (await import(pathToFileURL(resolve(path)).href).catch((cause: unknown) => {
    throw new ChronosError(
      'INVALID_ENVIRONMENT',
      `HANDLERS names a module that cannot be loaded: ${path}: ${(cause as Error).message}`,
      { cause },
    );
  })) as Record<string, unknown>;
  const { default: main, ...named } = module;
  try {
    if (typeof main === 'function') await (main as (scheduler: Scheduler) => unknown)(scheduler);
    const handlers =
      typeof main === 'function' ? {} : { ...named, ...(main as Record<string, unknown> | undefined) };
    for (const [taskType, handler] of Object.entries(handlers)) {
      scheduler.registerHandler(taskType, handler as (payload: unknown) => unknown);
    }
  } catch (cause) {
    const { message } = cause as Error;
    throw new ChronosError(
      'INVALID_ENVIRONMENT',
      `HANDLERS: ${path} did not register its handlers: ${message} (its exports must be handlers, or a default function that receives the scheduler)`,
      { cause },
    );
  }
}
