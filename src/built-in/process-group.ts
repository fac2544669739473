import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { systemClock } from '../runtime/system-clock.js';
import { within } from '../runtime/within.js';
import { CappedText } from './capped-text.js';
import type { ShellCommand } from './shell-payload.js';
import { onlyZombies } from './zombies.js';

/** Milliseconds between SIGTERM and SIGKILL. */
const TERM_GRACE = 2000;
/** Milliseconds after SIGKILL. Longer lives only what is not ours to kill, or hangs in the kernel. */
const KILL_GRACE = 1000;
/** Milliseconds that what a child has left behind is given to end by itself. */
const LINGER = 500;
const BETWEEN_LOOKS = 20;
/** Looks between two at the process table, which is long on some machines. */
const BETWEEN_TABLES = 10;
const FEWEST_LOOKS = 5;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

type Child = ChildProcessByStdio<null, Readable, Readable>;

/** A worker that exits takes its groups along: the next owner of the job would run beside them. */
const living = new Set<ProcessGroup>();

function killLiving(): void {
  for (const group of living) group.send('SIGKILL');
}

/**
 * A child process and all it starts. The child leads a process group of its own, so that one signal reaches its
 * children too. The group's id cannot be given to another process while a member lives; once the group was seen
 * to be gone it is never signalled again.
 */
export class ProcessGroup {
  readonly stdout = new CappedText();
  readonly stderr = new CappedText();
  /** The end of the child; its own children may live on. */
  readonly exit: Promise<Exit>;
  readonly #child: Child;
  readonly #pid: number;
  readonly #piped: Promise<unknown>;
  #open = true;
  #alive = true;

  private constructor(child: Child, pid: number) {
    this.#child = child;
    this.#pid = pid;
    this.exit = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    this.#piped = new Promise((resolve) => child.once('close', resolve)).then(() => (this.#open = false));
    // Read to the end, kept or not: a full pipe would halt the child.
    child.stdout.on('data', (chunk: Buffer) => this.stdout.add(chunk));
    child.stderr.on('data', (chunk: Buffer) => this.stderr.add(chunk));
    // A broken pipe ends the output, not the worker.
    for (const pipe of [child.stdout, child.stderr]) pipe.on('error', () => pipe.destroy());
    if (living.size === 0) process.on('exit', killLiving);
    living.add(this);
  }

  /** Rejects with the system's error when the file cannot be run. */
  static async start({ file, args, cwd }: ShellCommand, env: NodeJS.ProcessEnv): Promise<ProcessGroup> {
    const child = spawn(file, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    await once(child, 'spawn');
    if (child.pid === undefined) throw new Error('a process without an id');
    return new ProcessGroup(child, child.pid);
  }

  /** SIGTERM to all, and SIGKILL to those that are left when the time to heed it has passed. */
  async end(): Promise<void> {
    this.send('SIGTERM');
    if (!(await this.#goneWithin(TERM_GRACE))) {
      this.send('SIGKILL');
      await this.#goneWithin(KILL_GRACE);
    }
    this.#letGo();
  }

  /**
   * To be called after the exit. A job is over with its child: what that left in the group, be it at work in the
   * background or only holding the pipes, gets a moment to end and is then ended, because no timeout and no cancel
   * would reach it any more. A daemon that is meant to stay has to leave the group, with setsid; its output is lost.
   */
  async finish(): Promise<void> {
    await within(systemClock, BETWEEN_LOOKS, this.#piped);
    if (await this.#goneWithin(LINGER, () => !this.#open)) this.#letGo();
    else await this.end();
  }

  /** False when nobody is left to receive it. The signal 0 only asks. */
  send(signal: NodeJS.Signals | 0): boolean {
    if (!this.#alive) return false;
    try {
      process.kill(-this.#pid, signal);
    } catch (error) {
      // EPERM: it lives, as another user.
      this.#alive = (error as NodeJS.ErrnoException).code !== 'ESRCH';
    }
    return this.#alive;
  }

  /** Looks some times however late it is: while the event loop was held up, neither output nor end was noticed. */
  async #goneWithin(ms: number, and: () => boolean = () => true): Promise<boolean> {
    const end = systemClock.monotonic() + ms;
    for (let look = 1; look <= FEWEST_LOOKS || systemClock.monotonic() < end; look++) {
      if (!this.send(0) && and()) return true;
      await systemClock.sleep(BETWEEN_LOOKS);
      if (look % BETWEEN_TABLES === 0 && this.#alive && (await onlyZombies(this.#pid))) {
        // For one that was started while the table was read.
        this.send('SIGKILL');
        this.#alive = false;
      }
    }
    return !this.send(0) && and();
  }

  #letGo(): void {
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
    living.delete(this);
    if (living.size === 0) process.off('exit', killLiving);
  }
}
