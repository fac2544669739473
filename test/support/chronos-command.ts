import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { text } from 'node:stream/consumers';
import { assertNoCrash } from './crashes.js';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MAIN = 'dist/src/cli/main.js';

export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Only PATH and these variables, so that the developer's environment has no effect. */
export function cleanEnvironment(more: Readonly<Record<string, string>>): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', ...more };
}

/** Runs the built `chronos` without a terminal, and resolves when it has exited. */
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
  assertNoCrash(`chronos ${words.join(' ')}`, stderr);
  return { code, stdout, stderr };
}

const alive = new Set<CommandProcess>();

/** A running process of the built `chronos`, or of another `program`. */
export class CommandProcess {
  /** Resolves with the exit code, after all output has been read. */
  readonly exited: Promise<number | null>;
  /** Everything written so far to stdout and stderr. */
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
    this.exited = once(this.#child, 'close').then(([code]: unknown[]) => {
      alive.delete(this);
      return code as number | null;
    });
    // Not awaited: a rejection fails the test file, whether a test waits for the exit or not.
    void this.exited.then(() => assertNoCrash([...program, ...words].join(' '), this.output));
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk: Buffer) => this.#append(chunk.toString()));
  }

  /** Resolves when the output matches. Rejects if the process exits before. */
  waitForOutput(pattern: RegExp): Promise<void> {
    if (pattern.test(this.output)) return Promise.resolve();
    const shown = new Promise<void>((resolve) => this.#watchers.push({ pattern, resolve }));
    const exited = this.exited.then((code) =>
      Promise.reject(
        new Error(`exited with ${String(code)} before the output matched ${String(pattern)}: ${this.output}`),
      ),
    );
    return Promise.race([shown, exited]);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    // A child process of the command may still have the pipes open.
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.destroy();
    await this.exited;
  }

  #append(text: string): void {
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
  await Promise.all([...alive].map((command) => command.kill()));
}
