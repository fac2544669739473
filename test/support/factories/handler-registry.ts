import { resolveOptions, type SchedulerOptions } from '../../../src/config/options.js';
import { HandlerRegistry } from '../../../src/handlers/handler-registry.js';

/** A registry without handlers, for a Scheduler with these options. */
export function aRegistry(options: Partial<SchedulerOptions> = {}): HandlerRegistry {
  return new HandlerRegistry(resolveOptions({ uri: 'mongodb://unused/app', ...options }));
}
