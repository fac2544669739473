/** What a job does: nothing, return a result, or wait five milliseconds. */
export type Work = 'noop' | 'result' | 'sleep';

/** What a measured process does. */
export type Role =
  /** A worker that runs `total` jobs, or until it is stopped. `skipsDuplicateCheck`: it does not remember which jobs it started. */
  | { name: 'work'; total: number; concurrency: number; work: Work; skipsDuplicateCheck?: boolean }
  /** A worker that measures how long after their dispatch `count` jobs start. Every 100 ms, `load` other jobs are added. */
  | { name: 'receive'; count: number; load: number }
  /** Dispatches the jobs for `receive`, `gap` milliseconds apart. */
  | { name: 'send'; count: number; gap: number }
  | { name: 'enqueue'; total: number; how: 'single' | 'bulk' }
  /** A worker without jobs. */
  | { name: 'idle' }
  /** The floor: the same work with the MongoDB driver alone. */
  | { name: 'drain'; work: Work; batch: number }
  | { name: 'floorReceive'; count: number }
  | { name: 'floorSend'; count: number; gap: number }
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
  readonly #started = new Set<string>();
  #startedTwice = 0;

  started(id: string): void {
    if (this.#started.has(id)) this.#startedTwice++;
    this.#started.add(id);
  }

  measureMemory(): void {
    this.memories.push(process.memoryUsage().rss);
  }

  report(done: number): Report {
    return {
      milliseconds: sharedNow() - this.#since,
      done,
      startedTwice: this.#startedTwice,
      latencies: this.latencies,
      memory: process.memoryUsage().rss,
      memories: this.memories,
      claims: this.claims,
    };
  }
}
