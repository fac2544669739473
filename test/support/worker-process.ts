import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { assertNoCrash } from './crashes.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A line of a worker's log. */
export interface LogLine {
  msg: string;
  jobId?: string;
  taskType?: string;
  state?: string;
  err?: { message: string };
  [field: string]: unknown;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** How a worker reports that its renewal thread had an uncaught error; the thread is replaced. */
const DEAD_THREAD = 'the renewal thread ended unexpectedly';

const alive = new Set<WorkerProcess>();

/** A process of `node dist/worker.js`. Tests can wait for lines of its log. */
export class WorkerProcess {
  readonly id: string;
  /** Resolves when the process has exited and its whole output was read. */
  readonly exited: Promise<Exit>;
  readonly lines: LogLine[] = [];
  stderr = '';
  readonly #child: ChildProcess;
  #watchers: { matches: (line: LogLine) => boolean; resolve: (line: LogLine) => void }[] = [];

  constructor(id: string, env: Record<string, string>) {
    this.id = id;
    this.#child = spawn(process.execPath, ['dist/worker.js'], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      // The developer's environment and .env file have no effect.
      env: {
        PATH: process.env['PATH'],
        WORKER_ID: id,
        LOG_LEVEL: 'debug',
        LOG_FORMAT: 'json',
        HANDLERS: 'test/fixtures/handlers.mjs',
        ...env,
      },
    });
    alive.add(this);
    this.exited = once(this.#child, 'close').then(([code, signal]: unknown[]) => {
      alive.delete(this);
      return { code, signal } as Exit;
    });
    // Not awaited: a rejection fails the test file, whether a test waits for the exit or not.
    void this.exited.then(() => {
      assertNoCrash(`the worker ${id}`, this.stderr);
      const deadThread = this.lines.find(({ err }) => err?.message === DEAD_THREAD);
      if (deadThread !== undefined) throw new Error(`the renewal thread of the worker ${id} died`);
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    if (this.#child.stdout !== null)
      createInterface(this.#child.stdout).on('line', (line) => this.#append(line));
  }

  /** Resolves when the worker is running. Rejects if it exits before. */
  static async start(id: string, env: Record<string, string>): Promise<WorkerProcess> {
    const worker = new WorkerProcess(id, env);
    await Promise.race([
      worker.line(({ state }) => state === 'Running'),
      worker.exited.then(({ code }) =>
        Promise.reject(new Error(`worker ${id} exited with ${String(code)}: ${worker.stderr}`)),
      ),
    ]);
    return worker;
  }

  /** Resolves with the first line that matches, also one from before this call. */
  line(matches: (line: LogLine) => boolean): Promise<LogLine> {
    const past = this.lines.find(matches);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((resolve) => this.#watchers.push({ matches, resolve }));
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exited;
  }

  #append(text: string): void {
    const line = JSON.parse(text) as LogLine;
    this.lines.push(line);
    this.#watchers = this.#watchers.filter(({ matches, resolve }) => {
      if (!matches(line)) return true;
      resolve(line);
      return false;
    });
  }
}

/** For `afterEach`: no process outlives its test. */
export async function killWorkers(): Promise<void> {
  await Promise.all([...alive].map((worker) => worker.kill()));
}
