import { setTimeout as pause } from 'node:timers/promises';
import { WorkerProcess } from '../../test/support/worker-process.js';

/** How long a process stays frozen: often past its locks. */
const LONGEST_FREEZE_MS = 6000;
/** How long it takes until somebody starts a new process in the place of a dead one. */
const LONGEST_GAP_MS = 1500;

export interface Deeds {
  starts: number;
  kills: number;
  freezes: number;
  stops: number;
}

/** Worker processes that are killed, frozen, stopped and started again at random. */
export class Herd {
  readonly deeds: Deeds = { starts: 0, kills: 0, freezes: 0, stops: 0 };
  /** Those that had no chance to tidy up. */
  readonly killed: string[] = [];
  /** What the processes complained of, and how often. */
  readonly complaints = new Map<string, number>();
  readonly #env: Record<string, string>;
  readonly #random: () => number;
  readonly #places: (WorkerProcess | undefined)[];
  readonly #frozen = new Set<WorkerProcess>();
  readonly #stopped: WorkerProcess[] = [];
  readonly #over = new AbortController();
  readonly #ends: Promise<unknown>[] = [];
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

  /** One deed, to a process chosen by chance. */
  strike(): void {
    const place = Math.floor(this.#random() * this.#places.length);
    const [deed, duration] = [this.#random(), this.#random()];
    const worker = this.#places[place];
    if (worker === undefined) return;
    if (deed < 0.55) {
      this.deeds.kills++;
      this.killed.push(worker.id);
      this.#places[place] = undefined;
      void worker.kill();
      this.#later(duration * LONGEST_GAP_MS, () => this.#places[place] ?? this.#start(place));
    } else if (deed < 0.9) {
      if (this.#frozen.has(worker)) return;
      this.deeds.freezes++;
      this.#frozen.add(worker);
      worker.signal('SIGSTOP');
      this.#later(duration * LONGEST_FREEZE_MS, () => this.#thaw(worker));
    } else {
      this.deeds.stops++;
      this.#places[place] = undefined;
      this.#stopped.push(worker);
      worker.signal('SIGTERM');
      this.#thaw(worker);
      this.#later(duration * LONGEST_GAP_MS, () => this.#places[place] ?? this.#start(place));
    }
  }

  /** Ends the chaos: nobody is frozen any more, and every place is taken. */
  async calm(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#ends.splice(0));
    this.fill();
  }

  /** Stops everybody gracefully; returns what went wrong with that, now or earlier. */
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
        // A signal that comes before a process listens to signals ends it at once.
        .filter(({ exit }) => exit.code !== 0 && exit.signal !== 'SIGTERM')
        .map(
          ({ worker, exit, stderr }) => `11: worker ${worker.id} ended with ${String(exit.code)}: ${stderr}`,
        )
    );
  }

  /** Leaves no process behind, whatever happened. */
  async destroy(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#ends.splice(0));
    await Promise.all(this.#places.splice(0).map(async (worker) => worker?.kill()));
  }

  #start(place: number): void {
    const id = `w${place}.${++this.#generation}`;
    const worker = new WorkerProcess(id, this.#env);
    this.deeds.starts++;
    this.#places[place] = worker;
    void worker.exited.then(() => {
      for (const { level, msg } of worker.lines as { level?: number; msg: string }[]) {
        if ((level ?? 0) >= 40 && msg.startsWith('cannot')) this.#complain(msg.replace(/,? next try.*/, ''));
      }
      if (worker.stderr !== '') this.#complain(worker.stderr.trim());
    });
  }

  #thaw(worker: WorkerProcess): void {
    if (this.#frozen.delete(worker)) worker.signal('SIGCONT');
  }

  #complain(text: string): void {
    this.complaints.set(text, (this.complaints.get(text) ?? 0) + 1);
  }

  #later(ms: number, deed: () => unknown): void {
    // When the chaos is over, at once.
    const waited = pause(ms, undefined, { signal: this.#over.signal }).catch(() => undefined);
    this.#ends.push(waited.then(deed));
  }
}
