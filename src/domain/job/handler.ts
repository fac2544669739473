import type { JobDocument } from './job.js';

/** The job, as the second argument of its handler. */
export type JobContext = Readonly<
  Pick<
    JobDocument,
    | 'taskType'
    | 'queue'
    | 'priority'
    | 'status'
    | 'nextRunAt'
    | 'schedule'
    | 'scheduledFor'
    | 'userId'
    | 'createdAt'
    | 'attempts'
    | 'crashes'
    | 'lockedBy'
    | 'progress'
  >
> & {
  readonly id: string;
  readonly tags: readonly string[];
  /** The payload as it was dispatched; the handler's first argument is the output of its schema. */
  readonly payload: unknown;
  /** Starts at 1. */
  readonly attempt: number;
  /** Increases with every change of owner: compare it to make side effects idempotent. */
  readonly fence: number;
  /** Aborted on timeout, cancel, shutdown and loss of the lock; `signal.reason` is an error that says which. */
  readonly signal: AbortSignal;
  /** Stores the progress of the job. Resolves to false if the lock is lost. */
  reportProgress(value: number, note?: string): Promise<boolean>;
  /** Adds a line to the log of this attempt. */
  log(line: string): void;
};

/** A handler as a function; what it returns is the result of the job. */
export type HandlerFunction<P, R = unknown> = (payload: P, job: JobContext) => R | Promise<R>;

/** A handler as an object with the method `handle`. */
export interface HandlerObject<P, R = unknown> {
  handle(payload: P, job: JobContext): R | Promise<R>;
}

/**
 * A class with a static `handle`, or with `handle` or `execute` on its instances, one per job. `execute` returns false to
 * fail the attempt.
 */
export type HandlerClass<P, R = unknown> = { taskType?: string } & (
  | ((abstract new (...args: never[]) => object) & HandlerObject<P, R>)
  | (new () => HandlerObject<P, R>)
  | (new () => { execute(job: JobContext): boolean | Promise<boolean> })
);

/** What runs the jobs of a task type: a function, a class or an object. */
export type Handler<P, R = unknown> = HandlerFunction<P, R> | HandlerClass<P, R> | HandlerObject<P, R>;
