import type { ResolvedOptions } from '../config/options.js';
import { VERSION } from '../config/version.js';
import type { HandlerRegistry } from '../worker/handler-registry.js';

/** What this process would work with: never the connection string, which may have a password in it. */
export interface ConfigurationView {
  version: string;
  workerId: string;
  /** Durations in milliseconds. */
  options: Omit<ResolvedOptions, 'uri' | 'clock' | 'taskHandlers' | 'workerId'>;
  /** What it has handlers for. */
  taskTypes: string[];
}

export function configurationOf(
  options: ResolvedOptions,
  registry: HandlerRegistry,
  workerId: string,
): ConfigurationView {
  const { uri: _uri, clock: _clock, taskHandlers: _handlers, workerId: _given, ...shown } = options;
  return { version: VERSION, workerId, options: shown, taskTypes: registry.taskTypes.sort() };
}
