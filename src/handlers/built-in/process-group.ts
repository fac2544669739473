import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { systemClock } from '../../runtime/system-clock.js';
import { waitAtMost } from '../../runtime/waiting.js';
import { BoundedOutput } from './bounded-output.js';

/** A file to run and its arguments. No shell reads them. */
export interface ShellCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** Default: the worker's own directory. */
  readonly cwd?: string;
  /** Added to the few variables that every child process gets. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Time between SIGTERM and SIGKILL. */
const TERM_GRACE_MS = 2000;
/** After SIGKILL, only processes of other users and those stuck in the kernel are left. */
const KILL_GRACE_MS = 1000;
/** How long background processes may keep running after the child has exited. */
const LINGER_MS = 500;
const CHECK_INTERVAL_MS = 20;
const MIN_CHECKS = 5;
/** Reading the process table is slow on machines with many processes. */
const CHECKS_PER_TABLE_READ = 10;

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

type Child = ChildProcessByStdio<null, Readable, Readable>;

/** Killed when the worker exits; otherwise they would still run when another worker retries the job. */
const runningGroups = new Set<ProcessGroup>();

function killRunningGroups(): void {
  for (const group of runningGroups) group.send('SIGKILL');
}

/**
 * A child process and all processes it starts. The child leads its own process group, so one signal reaches all of
 * them. The operating system may reuse the id of a group without members, so a group that is gone is never signaled
 * again.
 */
export class ProcessGroup {
  readonly stdout = new BoundedOutput();
  readonly stderr = new BoundedOutput();
  /** Resolves when the child ends; its own children may still run. */
  readonly exit: Promise<Exit>;
  readonly #child: Child;
  readonly #pid: number;
  readonly #pipesClosed: Promise<unknown>;
  #hasOpenPipes = true;
  #isAlive = true;

  private constructor(child: Child, pid: number) {
    this.#child = child;
    this.#pid = pid;
    this.exit = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    this.#pipesClosed = new Promise((resolve) => child.once('close', resolve)).then(
      () => (this.#hasOpenPipes = false),
    );
    // Reads everything, even what is dropped: a full pipe would block the child.
    child.stdout.on('data', (chunk: Buffer) => this.stdout.add(chunk));
    child.stderr.on('data', (chunk: Buffer) => this.stderr.add(chunk));
    // A broken pipe must not crash the worker.
    for (const pipe of [child.stdout, child.stderr]) pipe.on('error', () => pipe.destroy());
    if (runningGroups.size === 0) process.on('exit', killRunningGroups);
    runningGroups.add(this);
  }

  /** Rejects with the error of the operating system if the file cannot be executed. */
  static async start({ file, args, cwd }: ShellCommand, env: NodeJS.ProcessEnv): Promise<ProcessGroup> {
    const child = spawn(file, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    await once(child, 'spawn');
    if (child.pid === undefined) throw new Error('the child process has no id');
    return new ProcessGroup(child, child.pid);
  }

  /** Sends SIGTERM to all processes, and SIGKILL to those still alive after the grace time. */
  async terminate(): Promise<void> {
    this.send('SIGTERM');
    if (!(await this.#goneWithin(TERM_GRACE_MS))) {
      this.send('SIGKILL');
      await this.#goneWithin(KILL_GRACE_MS);
    }
    this.#release();
  }

  /**
   * Call this after the exit. The job ends with the child, and then no timeout or cancel can reach background processes
   * in the group: they get a moment to end and are then killed. A daemon that should keep running must leave the group
   * with setsid; its output is lost.
   */
  async finish(): Promise<void> {
    await waitAtMost(systemClock, CHECK_INTERVAL_MS, this.#pipesClosed);
    if (await this.#goneWithin(LINGER_MS, () => !this.#hasOpenPipes)) this.#release();
    else await this.terminate();
  }

  /** False if no process is left. Signal 0 only checks that. */
  send(signal: NodeJS.Signals | 0): boolean {
    if (!this.#isAlive) return false;
    try {
      process.kill(-this.#pid, signal);
    } catch (error) {
      // EPERM means alive, but owned by another user.
      this.#isAlive = (error as NodeJS.ErrnoException).code !== 'ESRCH';
    }
    return this.#isAlive;
  }

  /** Checks a few times even after the deadline: while the event loop was blocked, the exit was not seen. */
  async #goneWithin(ms: number, and: () => boolean = () => true): Promise<boolean> {
    const deadline = systemClock.monotonic() + ms;
    for (let checks = 1; checks <= MIN_CHECKS || systemClock.monotonic() < deadline; checks++) {
      if (!this.send(0) && and()) return true;
      await systemClock.sleep(CHECK_INTERVAL_MS);
      if (checks % CHECKS_PER_TABLE_READ === 0 && this.#isAlive && (await hasOnlyZombies(this.#pid))) {
        // A process may have started while the table was read.
        this.send('SIGKILL');
        this.#isAlive = false;
      }
    }
    return !this.send(0) && and();
  }

  #release(): void {
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
    runningGroups.delete(this);
    if (runningGroups.size === 0) process.off('exit', killRunningGroups);
  }
}

/**
 * True if the group has members and all of them are zombies. If the worker is the first process of a container,
 * orphans are never reaped: they stay in the process table, and `kill` reports them as alive. False without /proc.
 */
export async function hasOnlyZombies(group: number): Promise<boolean> {
  const ids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  let found = false;
  for (const id of ids) {
    const stat = await readFile(`/proc/${id}/stat`, 'latin1').catch(() => '');
    // `id (name) state parent group …`; the name may contain parentheses.
    const [state, , memberOf] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(memberOf) !== group) continue;
    if (state !== 'Z' && state !== 'X') return false;
    found = true;
  }
  return found;
}
