import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { text } from 'node:stream/consumers';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MAIN = 'dist/src/cli/main.js';

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Nothing of the developer's own environment. */
export function environmentOf(more: Readonly<Record<string, string>>): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', ...more };
}

/** A real `chronos`, to its end, without a terminal. */
export async function chronos(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...words], {
    cwd: ROOT,
    env: environmentOf(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = (await once(child, 'exit')) as [number | null];
  const [stdout, stderr] = await output;
  return { code, stdout, stderr };
}
