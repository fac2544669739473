/** What a job does: nothing, return a result, or wait five milliseconds. */
export type Work = 'noop' | 'result' | 'sleep';

/** What a measured process does. */
export type Role =
  /** A worker that runs `total` jobs, or until it is stopped. `skipsDuplicateCheck`: it does not remember which jobs it started. */
  | { name: 'work'; total: number; concurrency: number; work: Work; skipsDuplicateCheck?: boolean }
  /** A worker that measures how long after their dispatch `count` jobs start. Every 100 ms, `load` other jobs are added. */
  | { name: 'answer'; count: number; load: number }
  | { name: 'ask'; count: number; gap: number }
  | { name: 'enqueue'; total: number; how: 'single' | 'bulk' }
  /** A worker without jobs. */
  | { name: 'idle' }
  /** The same as above with only the driver: the floor. */
  | { name: 'drain'; work: Work; batch: number }
  | { name: 'floorAnswer'; count: number }
  | { name: 'floorAsk'; count: number; gap: number }
  | { name: 'insert'; total: number; how: 'single' | 'bulk' };

export interface Report {
  /** Since the start signal. */
  milliseconds: number;
  done: number;
  /** Jobs that this process started more than once. */
  startedTwice: number;
  latencies: number[];
  /** Resident memory at the end, in bytes. */
  memory: number;
  /** The same after each tenth of the jobs. */
  memories: number[];
  /** Processor time of the process, all threads, in milliseconds. */
  cpu: number;
  /** Claims that won jobs, and claims that found jobs but won none. */
  claims: { won: number; lost: number };
}

export type FromChild =
  | { kind: 'loaded' }
  | { kind: 'ready' }
  | { kind: 'progress'; done: number }
  | { kind: 'report'; report: Report };

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

/** Records what happened in this process. */
export class Recorder {
  readonly latencies: number[] = [];
  readonly memories: number[] = [];
  readonly claims = { won: 0, lost: 0 };
  readonly #since = sharedNow();
  readonly #cpuBefore = process.cpuUsage();
  readonly #started = new Set<string>();
  #startedTwice = 0;

  started(id: string): void {
    if (this.#started.has(id)) this.#startedTwice++;
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
      startedTwice: this.#startedTwice,
      latencies: this.latencies,
      memory: process.memoryUsage().rss,
      memories: this.memories,
      cpu: this.#cpu(),
      claims: this.claims,
    };
  }
}
