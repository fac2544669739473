import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { text } from 'node:stream/consumers';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MAIN = 'dist/src/cli/main.js';

export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Nothing of the developer's own environment. */
export function cleanEnvironment(more: Readonly<Record<string, string>>): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', ...more };
}

/** A real `chronos`, to its end, without a terminal. */
export async function runChronos(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const child = spawn(process.execPath, [MAIN, ...words], {
    cwd: ROOT,
    env: cleanEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = (await once(child, 'exit')) as [number | null];
  const [stdout, stderr] = await output;
  return { code, stdout, stderr };
}

const alive = new Set<CommandProcess>();

/** A `chronos` that goes on until it is told to stop. */
export class CommandProcess {
  readonly exited: Promise<number | null>;
  /** What it wrote so far, to either stream. */
  output = '';
  readonly #child: ChildProcess;
  #watchers: { pattern: RegExp; resolve: () => void }[] = [];

  constructor(words: readonly string[], env: Readonly<Record<string, string>>, program = [MAIN]) {
    this.#child = spawn(process.execPath, [...program, ...words], {
      cwd: ROOT,
      env: cleanEnvironment(env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    alive.add(this);
    this.exited = once(this.#child, 'exit').then(([code]: unknown[]) => {
      alive.delete(this);
      return code as number | null;
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk: Buffer) => this.#hear(chunk.toString()));
  }

  /** Resolves once what it wrote matches. */
  shows(pattern: RegExp): Promise<void> {
    if (pattern.test(this.output)) return Promise.resolve();
    const shown = new Promise<void>((resolve) => this.#watchers.push({ pattern, resolve }));
    const gone = this.exited.then((code) =>
      Promise.reject(
        new Error(`it ended with ${String(code)} before it showed ${String(pattern)}: ${this.output}`),
      ),
    );
    return Promise.race([shown, gone]);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  #hear(text: string): void {
    this.output += text;
    this.#watchers = this.#watchers.filter(({ pattern, resolve }) => {
      if (!pattern.test(this.output)) return true;
      resolve();
      return false;
    });
  }
}

/** For `afterEach`: no process outlives its test. */
export async function killCommands(): Promise<void> {
  for (const command of alive) command.signal('SIGKILL');
  await Promise.all([...alive].map((command) => command.exited));
}
