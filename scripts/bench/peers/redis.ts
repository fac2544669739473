import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { firstFreePort } from '../../mongod/ports.js';
import { findProgram, startProcess, type Server } from './server-process.js';

const FIRST_PORT = 6390;

/** Starts a Redis that syncs its append-only file to disk once per second; undefined if none is installed. */
export async function startRedis(): Promise<Server | undefined> {
  const file = await findProgram('redis-server');
  if (file === undefined) return undefined;
  const folder = await mkdtemp(path.join(tmpdir(), 'chronos-redis-'));
  const port = await firstFreePort(FIRST_PORT);
  const stop = await startProcess({
    file,
    folder,
    args: [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder],
      ...['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''],
    ],
    ready: 'Ready to accept connections',
    signal: 'SIGTERM',
  });
  return { url: `redis://127.0.0.1:${port}`, stop };
}
