import { findBinary, type Log } from './find-binary.js';

const VERSION = '8.2.0';

/** Of mongod and mongos. */
export const SERVER_ARGS = [
  // Otherwise it writes telemetry continuously.
  ...['--setParameter', 'diagnosticDataCollectionEnabled=false'],
  // Fail points: tests use them to lose replies.
  ...['--setParameter', 'enableTestCommands=1'],
];

export const MONGOD_ARGS = [
  ...SERVER_ARGS,
  // The default is half of the memory.
  ...['--wiredTigerCacheSizeGB', '0.5'],
  // Otherwise a secondary takes 15 seconds to shut down.
  ...['--setParameter', 'shutdownTimeoutMillisForSignaledShutdown=100'],
];

export type ServerOptions = Awaited<ReturnType<typeof serverOptions>>;

/** How mongodb-memory-server starts a mongod. */
export async function serverOptions(log: Log) {
  const binary = await findBinary('mongod', log);
  if (binary === undefined) log('No mongod found: downloading one ...');
  // This check would run the binary without its library path.
  process.env['MONGOMS_SYSTEM_BINARY_VERSION_CHECK'] ??= 'false';
  return {
    binary: { version: VERSION, ...(binary && { systemBinary: binary.path }) },
    // In its own process group: Ctrl-C must not end the database before the workers that use it.
    spawn: { env: { ...process.env, ...binary?.env }, detached: true },
  };
}
