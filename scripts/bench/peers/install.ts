import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));

/** The peers have their own lock file, so that only the benchmark installs them. */
export async function install(log: (line: string) => void): Promise<void> {
  // npm writes this file last.
  if (modifiedAt('node_modules/.package-lock.json') >= modifiedAt('package-lock.json')) return;
  log('Installing the peers (npm ci) ...');
  const npm = spawn('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: FOLDER,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  const [code] = (await once(npm, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`The peers could not be installed: npm ci exited with ${String(code)}.`);
}

function modifiedAt(file: string): number {
  return statSync(path.join(FOLDER, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

export function versionOf(name: string): string {
  const file = path.join(FOLDER, 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
