import { execFile } from 'node:child_process';
import { chown, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { firstFreePort } from '../../mongod/ports.js';
import { findProgram, startProcess, type Account, type Server } from './server-process.js';

const run = promisify(execFile);

const FIRST_PORT = 5490;
const USER = 'bench';
/** Debian installs the programs of the server here, in one folder per version, and not on the PATH. */
const VERSIONS = '/usr/lib/postgresql';

/** Starts a PostgreSQL with its default settings, which are durable; undefined if none is installed. */
export async function startPostgres(): Promise<Server | undefined> {
  const initdb = await findServerProgram('initdb');
  const file = await findServerProgram('postgres');
  if (initdb === undefined || file === undefined) return undefined;
  const account = await findUnprivilegedAccount();
  const folder = await mkdtemp(path.join(tmpdir(), 'chronos-postgres-'));
  try {
    if (account.uid !== undefined) await chown(folder, account.uid, account.gid ?? account.uid);
    await run(initdb, ['-D', folder, '-U', USER, '--auth', 'trust', '-E', 'UTF8', '--locale', 'C'], {
      cwd: folder,
      ...account,
    });
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  const port = await firstFreePort(FIRST_PORT);
  const stop = await startProcess({
    file,
    folder,
    account,
    args: [
      ...['-D', folder, '-p', String(port), '-c', 'listen_addresses=127.0.0.1'],
      ...['-c', `unix_socket_directories=${folder}`, '-c', 'max_connections=200'],
    ],
    ready: 'ready to accept connections',
    signal: 'SIGINT',
  });
  return { url: `postgres://${USER}@127.0.0.1:${port}/postgres`, stop };
}

async function findServerProgram(name: string): Promise<string | undefined> {
  const versions = await readdir(VERSIONS).catch(() => []);
  const newestFirst = versions.sort((a, b) => Number(b) - Number(a));
  return (
    (await findProgram(name)) ??
    findProgram(
      name,
      newestFirst.map((version) => path.join(VERSIONS, version, 'bin')),
    )
  );
}

/** PostgreSQL refuses to run as root. */
async function findUnprivilegedAccount(): Promise<Account> {
  if (process.getuid?.() !== 0) return {};
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all(['-u', '-g'].map((option) => run('id', [option, name])));
      return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
    } catch {
      // There is no such account.
    }
  }
  throw new Error(
    'PostgreSQL does not run as root, and there is no account postgres or nobody to run it as.',
  );
}
