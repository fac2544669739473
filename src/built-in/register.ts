import type { ResolvedOptions } from '../config/options.js';
import { inheritedEnvironment } from '../config/process.js';
import type { HandlerRegistry } from '../worker/handler-registry.js';
import { eventHandler, type EventChannel } from './event-channel.js';
import { shellHandler } from './shell.js';
import { urlHandler } from './url.js';

/** The task types that every worker has, unless the application has handlers of the same names. */
export function registerBuiltIns(
  registry: HandlerRegistry,
  { shellFiles, urlHosts }: Pick<ResolvedOptions, 'shellFiles' | 'urlHosts'>,
  channel: EventChannel,
): void {
  registry.registerBuiltIn('shell', shellHandler({ files: shellFiles, environment: inheritedEnvironment() }));
  registry.registerBuiltIn('url', urlHandler({ hosts: urlHosts }));
  registry.registerBuiltIn('event', eventHandler(channel));
}
