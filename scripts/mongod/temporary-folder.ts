import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { isAlive } from './processes.js';

/** Also removes the folders of processes that were killed: about 200 MB each. */
export async function createTemporaryFolder(): Promise<string> {
  for (const name of await readdir(tmpdir())) {
    const [, ownerPid] = /^chronos-mongod-(\d+)-/.exec(name) ?? [];
    if (ownerPid !== undefined && !isAlive(Number(ownerPid))) await removeFolder(path.join(tmpdir(), name));
  }
  return mkdtemp(path.join(tmpdir(), `chronos-mongod-${process.pid}-`));
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}
