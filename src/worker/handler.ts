import type { JobDocument } from '../domain/job.js';

/** What a handler is given of its job, beside the payload. */
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
  /** The payload as it was dispatched; the handler's first argument has passed its schema. */
  readonly payload: unknown;
  /** 1 is the first. */
  readonly attempt: number;
  /** Rises with every change of owner: compare it to make side effects idempotent. */
  readonly fence: number;
  /** Aborted on timeout, cancel, shutdown and loss of the lock; `signal.reason` is an error that says which. */
  readonly signal: AbortSignal;
  /** Stores how far the job is; resolves to false when the lock is gone. */
  reportProgress(value: number, note?: string): Promise<boolean>;
  /** Adds a line to this attempt's row in the execution log. */
  log(line: string): void;
};

export type HandlerFunction<P> = (payload: P, job: JobContext) => unknown;

/** A class whose instances run one job each. `execute` returns false to fail the attempt. */
export type HandlerClass<P> =
  | ((abstract new (...args: never[]) => object) & {
      handle(payload: P, job: JobContext): unknown;
      taskType?: string;
    })
  | ((new () => { handle(payload: P, job: JobContext): unknown }) & { taskType?: string })
  | ((new () => { execute(job: JobContext): boolean | Promise<boolean> }) & { taskType?: string });

/** An object with a `handle` method. */
export interface HandlerObject<P> {
  handle(payload: P, job: JobContext): unknown;
}

export type Handler<P> = HandlerFunction<P> | HandlerClass<P> | HandlerObject<P>;
