import { spawn } from 'node:child_process';
import { constants, rmSync } from 'node:fs';
import { access } from 'node:fs/promises';
import path from 'node:path';

export interface Server {
  url: string;
  stop: () => Promise<void>;
}

export interface Account {
  uid?: number;
  gid?: number;
}

interface Command {
  file: string;
  args: string[];
  /** Contains its data; removed when it stops. */
  folder: string;
  account?: Account;
  /** Its output contains this when it accepts connections. */
  ready: string;
  /** Stops it without waiting for its clients. */
  signal: NodeJS.Signals;
}

/** Starts a server. Resolves when it accepts connections, to a function that stops it and removes its data. */
export async function startProcess(command: Command): Promise<() => Promise<void>> {
  const { file, args, folder, account, ready, signal } = command;
  const child = spawn(file, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], ...account });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const discard = (): void => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', discard);
  const stop = async (): Promise<void> => {
    child.kill(signal);
    await exited;
    process.off('exit', discard);
    discard();
  };
  let output = '';
  try {
    await new Promise<void>((resolve, reject) => {
      const listen = (chunk: Buffer): void => {
        output += chunk.toString();
        if (output.includes(ready)) resolve();
      };
      child.stdout.on('data', listen);
      child.stderr.on('data', listen);
      child.once('error', reject);
      child.once('exit', () => {
        reject(new Error(`${path.basename(file)} did not start:\n${output}`));
      });
    });
  } catch (error) {
    process.off('exit', discard);
    discard();
    throw error;
  }
  // Later output still has to be read, otherwise the pipe fills up.
  for (const stream of [child.stdout, child.stderr]) stream.removeAllListeners('data').resume();
  return stop;
}

export async function findProgram(
  name: string,
  folders = (process.env['PATH'] ?? '').split(path.delimiter),
): Promise<string | undefined> {
  for (const folder of folders) {
    const candidate = path.join(folder, name);
    try {
      await access(candidate, constants.X_OK);
      return candidate;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}
