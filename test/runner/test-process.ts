import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));
/** Output that was written before the message of a file may arrive after it. */
const OUTPUT_DELAY_MS = 100;

export interface TestOptions {
  grep: string | undefined;
  forbidOnly: boolean;
}

export interface FileCounts {
  passed: number;
  failed: number;
  pending: number;
  /** The full title of each test that failed, and the first lines of its error. */
  failures: string[];
}

export interface FileResult extends FileCounts {
  file: string;
  ms: number;
  /** Used by the test process itself, without the processes that its tests started. */
  cpuMs: number;
  /** Everything that the process wrote while the file ran. */
  output: string;
}

/** The message of a test process after each file. */
export interface FileMessage extends FileCounts {
  cpuMs: number;
}

/** A process that runs one test file after the other; see child.ts for its side. */
export class TestProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<number | null>;
  #output = '';

  constructor(options: TestOptions) {
    this.#child = fork(CHILD, [JSON.stringify(options)], {
      cwd: ROOT,
      execArgv: ['--import', 'tsx', '--import', './test/support/compiled-threads.mjs'],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.#output += chunk.toString()));
    this.#exited = once(this.#child, 'exit').then(([code]) => code as number | null);
  }

  get hasExited(): boolean {
    return !this.#child.connected;
  }

  async run(file: string): Promise<FileResult> {
    const startedAt = performance.now();
    this.#output = '';
    const answer = once(this.#child, 'message').then(([message]) => message as FileMessage);
    this.#child.send(file);
    const message = await Promise.race([answer, this.#exited.then(crashed)]);
    const ms = performance.now() - startedAt;
    if (message.failed > 0) await pause(OUTPUT_DELAY_MS);
    return { ...message, file, ms, output: this.#output };
  }

  /** Tells the process to end. The result is a failure if something keeps it alive, otherwise null. */
  async end(): Promise<FileResult | null> {
    if (this.hasExited) return null;
    this.#output = '';
    this.#child.disconnect();
    const code = await this.#exited;
    if (code === 0) return null;
    await pause(OUTPUT_DELAY_MS);
    return { ...crashed(code), file: 'the end of the test process', ms: 0, output: this.#output };
  }
}

function crashed(code: number | null): FileMessage {
  const failures = [`the test process ended with ${String(code)}`];
  return { passed: 0, failed: 1, pending: 0, failures, cpuMs: 0 };
}
