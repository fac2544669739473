/** What a job of the benchmark does: nothing, return something, or take five milliseconds. */
export type Work = 'noop' | 'result' | 'sleep';

/** What a process under measurement is for. */
export type Role =
  /** A worker, until it has completed `total` jobs, or is told to stop. `forgetful`: it keeps no list of what it started. */
  | { name: 'work'; total: number; concurrency: number; work: Work; forgetful?: boolean }
  /** A worker that notes how long after their dispatch `count` jobs start. `load` other jobs come in every 100 ms. */
  | { name: 'answer'; count: number; load: number }
  | { name: 'ask'; count: number; gap: number }
  | { name: 'enqueue'; total: number; how: 'single' | 'bulk' }
  /** A worker with nothing to do. */
  | { name: 'idle' }
  /** The same with the driver alone. */
  | { name: 'drain'; work: Work; batch: number }
  | { name: 'floorAnswer'; count: number }
  | { name: 'floorAsk'; count: number; gap: number }
  | { name: 'insert'; total: number; how: 'single' | 'bulk' };

export interface Report {
  /** From when it was told to go. */
  milliseconds: number;
  done: number;
  /** Jobs that this process started more than once. */
  twice: number;
  latencies: number[];
  /** Resident memory at the end, in bytes. */
  memory: number;
  /** The same after each tenth of the jobs. */
  memories: number[];
  /** Processor time of the process, all threads, in milliseconds. */
  cpu: number;
  /** Claims that won something, and that won nothing although jobs were there. */
  claims: { won: number; lost: number };
}

export type FromChild =
  | { kind: 'loaded' }
  | { kind: 'ready' }
  | { kind: 'progress'; done: number }
  | { kind: 'report'; report: Report };

/** What a role gets to work with. */
export interface Context {
  uri: string;
  stopped: Promise<void>;
  ready: () => void;
  progress: (done: number) => void;
}

/** A clock that all processes of the machine share, in milliseconds. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Notes what happened in this process. */
export class Notes {
  readonly latencies: number[] = [];
  readonly memories: number[] = [];
  readonly claims = { won: 0, lost: 0 };
  readonly #since = sharedNow();
  readonly #cpuBefore = process.cpuUsage();
  readonly #started = new Set<string>();
  #twice = 0;

  started(id: string): void {
    if (this.#started.has(id)) this.#twice++;
    this.#started.add(id);
  }

  measureMemory(): void {
    this.memories.push(process.memoryUsage().rss);
  }

  #cpu(): number {
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    return (user + system) / 1000;
  }

  report(done: number): Report {
    return {
      milliseconds: sharedNow() - this.#since,
      done,
      twice: this.#twice,
      latencies: this.latencies,
      memory: process.memoryUsage().rss,
      memories: this.memories,
      cpu: this.#cpu(),
      claims: this.claims,
    };
  }
}
