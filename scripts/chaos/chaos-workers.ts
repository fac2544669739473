import { setTimeout as pause } from 'node:timers/promises';
import { WorkerProcess } from '../../test/support/worker-process.js';

/** Longer than the lock timeout, so that many freezes cost the process its locks. */
const MAX_FREEZE_MS = 6000;
/** A dead process is replaced within this time. */
const MAX_RESTART_DELAY_MS = 1500;

export interface FaultCounts {
  starts: number;
  kills: number;
  freezes: number;
  stops: number;
}

/** Worker processes that are killed, frozen, stopped and started again at random. */
export class ChaosWorkers {
  readonly faults: FaultCounts = { starts: 0, kills: 0, freezes: 0, stops: 0 };
  /** Ids of processes that ended without a graceful stop. */
  readonly killed: string[] = [];
  /** Failed operations and messages on standard error, and how often each occurred. */
  readonly problems = new Map<string, number>();
  readonly #env: Record<string, string>;
  readonly #random: () => number;
  readonly #places: (WorkerProcess | undefined)[];
  readonly #frozen = new Set<WorkerProcess>();
  readonly #stopped: WorkerProcess[] = [];
  readonly #faultsEnded = new AbortController();
  readonly #pendingActions: Promise<unknown>[] = [];
  #generation = 0;

  constructor(size: number, env: Record<string, string>, random: () => number) {
    this.#env = env;
    this.#random = random;
    this.#places = Array.from({ length: size });
  }

  get alive(): number {
    return this.#places.filter((worker) => worker !== undefined).length;
  }

  /** Starts a process in every place that has none. */
  fill(): void {
    for (const [place, worker] of this.#places.entries()) if (worker === undefined) this.#start(place);
  }

  /** Kills, freezes or stops a random process. */
  injectFault(): void {
    const place = Math.floor(this.#random() * this.#places.length);
    const [fault, duration] = [this.#random(), this.#random()];
    const worker = this.#places[place];
    if (worker === undefined) return;
    if (fault < 0.55) {
      this.faults.kills++;
      this.killed.push(worker.id);
      this.#places[place] = undefined;
      void worker.kill();
      this.#later(duration * MAX_RESTART_DELAY_MS, () => this.#places[place] ?? this.#start(place));
    } else if (fault < 0.9) {
      if (this.#frozen.has(worker)) return;
      this.faults.freezes++;
      this.#frozen.add(worker);
      worker.signal('SIGSTOP');
      this.#later(duration * MAX_FREEZE_MS, () => this.#resume(worker));
    } else {
      this.faults.stops++;
      this.#places[place] = undefined;
      this.#stopped.push(worker);
      worker.signal('SIGTERM');
      this.#resume(worker);
      this.#later(duration * MAX_RESTART_DELAY_MS, () => this.#places[place] ?? this.#start(place));
    }
  }

  /** Resumes frozen processes and replaces dead ones. */
  async endFaults(): Promise<void> {
    this.#faultsEnded.abort();
    await Promise.all(this.#pendingActions.splice(0));
    this.fill();
  }

  /** Stops all processes gracefully; returns a violation for each one that exited with an error, now or earlier. */
  async stop(): Promise<string[]> {
    const workers = this.#places.splice(0).filter((worker) => worker !== undefined);
    for (const worker of workers) worker.signal('SIGTERM');
    const exits = await Promise.all(
      [...this.#stopped, ...workers].map(async (worker) => {
        return { worker, exit: await worker.exited, stderr: worker.stderr };
      }),
    );
    return (
      exits
        // SIGTERM kills a process that has not registered its signal handlers yet.
        .filter(({ exit }) => exit.code !== 0 && exit.signal !== 'SIGTERM')
        .map(
          ({ worker, exit, stderr }) => `11: worker ${worker.id} ended with ${String(exit.code)}: ${stderr}`,
        )
    );
  }

  /** Kills everything that is still running. */
  async destroy(): Promise<void> {
    this.#faultsEnded.abort();
    await Promise.all(this.#pendingActions.splice(0));
    await Promise.all(this.#places.splice(0).map(async (worker) => worker?.kill()));
  }

  #start(place: number): void {
    const id = `w${place}.${++this.#generation}`;
    const worker = new WorkerProcess(id, this.#env);
    this.faults.starts++;
    this.#places[place] = worker;
    void worker.exited.then(() => {
      for (const { level, operation } of worker.lines as { level?: number; operation?: string }[]) {
        if ((level ?? 0) >= 40 && operation !== undefined) this.#addProblem(`${operation} failed`);
      }
      if (worker.stderr !== '') this.#addProblem(worker.stderr.trim());
    });
  }

  #resume(worker: WorkerProcess): void {
    if (this.#frozen.delete(worker)) worker.signal('SIGCONT');
  }

  #addProblem(text: string): void {
    this.problems.set(text, (this.problems.get(text) ?? 0) + 1);
  }

  /** Runs an action after a delay, or immediately when the faults end. */
  #later(ms: number, action: () => unknown): void {
    const waited = pause(ms, undefined, { signal: this.#faultsEnded.signal }).catch(() => undefined);
    this.#pendingActions.push(waited.then(action));
  }
}
