import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Duration } from '../domain/duration.js';
import type { HandlerRetries, RetryFunctions, RetryPolicy } from '../domain/job/backoff.js';
import type { JobContext } from '../domain/job/handler.js';
import type { Retention } from '../domain/job/job.js';
import * as v from '../domain/validation.js';

/** When failed attempts are repeated. */
export interface RetryOptions {
  /** Total number of attempts, including the first. Default 3. */
  max?: number;
  /** Delay before the second attempt; it doubles with each further attempt. Default `'1s'`. */
  base?: Duration;
  /** Maximum delay. Default `'60s'`. */
  cap?: Duration;
  /** `full`: a random delay up to the computed one; `none`: exactly the computed one. Default `full`. */
  jitter?: 'full' | 'none';
}

/** How long finished jobs are kept. */
export interface RetentionOptions {
  /** Default `'1d'`. */
  completed?: Duration;
  /** Default `'30d'`. */
  failed?: Duration;
  /** Cancelled, skipped and expired jobs. Default `'1d'`. */
  cancelled?: Duration;
}

export const retentionShape: v.Shape<Partial<Retention>> = v.object<Retention>({
  completed: v.duration(),
  failed: v.duration(),
  cancelled: v.duration(),
});

export const expiresInShape = v.described(
  v.duration({ min: 1 }),
  'a job that has not started this long after it was due never starts',
);

/** The `retries` of a handler, a definition or a Scheduler, which are code, can also have functions. */
export type HandlerRetryOptions = RetryOptions & RetryFunctions;

export const DEFAULT_RETRIES = {
  max: 3,
  base: 1000,
  cap: 60_000,
  jitter: 'full',
} as const satisfies RetryPolicy;

export const MAX_ATTEMPTS = 1000;

const policyShapes: v.Shapes<RetryPolicy> = {
  max: v.integer(1, MAX_ATTEMPTS),
  base: v.duration(),
  cap: v.duration(),
  jitter: v.oneOf('full', 'none'),
};

const cannotBeStored = (name: keyof RetryFunctions): string =>
  `is a function and cannot be stored with a job or a schedule: set it in the options of the handler, ` +
  `registerHandler(taskType, handler, { retries: { ${name}: … } })`;

/** The retries of a job or a schedule. */
export const retryShape: v.Shape<Partial<RetryPolicy>> = v.refine(
  v.object(policyShapes, { rejected: { delay: cannotBeStored('delay'), if: cannotBeStored('if') } }),
  checkCap,
);

/** In a stored document, where durations are numbers: text with a unit is allowed in options only. */
export function isStoredRetryPolicy(value: unknown): boolean {
  const errors: string[] = [];
  retryShape.read(value, 'retries', errors);
  const { base, cap } = (value ?? {}) as Record<string, unknown>;
  return errors.length === 0 && typeof base !== 'string' && typeof cap !== 'string';
}

/** The retries of a handler or a Scheduler. */
export const handlerRetryShape: v.Shape<Partial<HandlerRetries>> = v.refine(
  v.object<HandlerRetries>({ ...policyShapes, delay: v.fn(), if: v.fn() }),
  checkCap,
);

/** A base longer than the default cap raises the cap; a cap that is set below the base is a mistake. */
function checkCap<T extends Partial<RetryPolicy>>(retries: T, path: string, errors: string[]): T {
  const { base = 0, cap } = retries;
  if (cap === undefined) return base > DEFAULT_RETRIES.cap ? { ...retries, cap: base } : retries;
  if (cap < base) errors.push(`${path}.cap (${cap} ms) must not be shorter than ${path}.base (${base} ms)`);
  return retries;
}

/** Decides whether a job runs. */
export type Filter<A = unknown> = (payload: A, job: JobContext) => boolean | Promise<boolean>;
/** Called before a handler, or after its outcome is decided. */
export type Hook<A = unknown> = (payload: A, job: JobContext) => unknown;
/** Called after a handler returned, with its result. */
export type SuccessHook<A = unknown> = (payload: A, job: JobContext, result: unknown) => unknown;
/** Called after an attempt failed, with its error. */
export type ErrorHook<A = unknown> = (error: Error, payload: A, job: JobContext) => unknown;

// Without a payload type, hooks declare the one they expect.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type AnyPayload = any;

/** How jobs of one task type run. */
export interface HandlerOptions<A = AnyPayload> {
  /** How long one attempt may take. Default: the Scheduler's `timeout`. */
  timeout?: Duration;
  /** Fields that are not set come from the Scheduler's `retries`. */
  retries?: HandlerRetryOptions;
  /** How long the lock of a job lasts without renewal. Default: the Scheduler's `lockTimeout`. */
  lease?: Duration;
  /** A job that has not started this long after it was due never starts: it ends `expired`. Default: never. */
  expiresIn?: Duration;
  /** Fields that are not set come from the Scheduler's `retention`. */
  retention?: RetentionOptions;
  /** A Standard Schema. Payloads are checked at dispatch and again before execution. */
  schema?: StandardSchemaV1;
  /** `immediate` writes each outcome separately, before its slot is freed; `batched` writes several together. Default `batched`. */
  settle?: 'batched' | 'immediate';
  /** A job is skipped unless all of these return true. One function or a list, like all the following. */
  when?: Filter<A> | readonly Filter<A>[];
  /** A job is skipped if one of these returns true. */
  skip?: Filter<A> | readonly Filter<A>[];
  /** Run before the handler, within the middleware. An error fails the attempt. */
  before?: Hook<A> | readonly Hook<A>[];
  /** Run after a completed attempt. */
  onSuccess?: SuccessHook<A> | readonly SuccessHook<A>[];
  /** Run after a failed attempt. */
  onError?: ErrorHook<A> | readonly ErrorHook<A>[];
  /** Run after every attempt. */
  after?: Hook<A> | readonly Hook<A>[];
}

export const leaseShape = v.duration({ min: 500 });

const handlerShapes = {
  timeout: v.duration({ min: 1 }),
  retries: handlerRetryShape,
  lease: leaseShape,
  expiresIn: expiresInShape,
  retention: retentionShape,
  schema: v.matching('a schema that follows Standard Schema', isStandardSchema),
  settle: v.oneOf('batched', 'immediate'),
  when: functions<Filter>(),
  skip: functions<Filter>(),
  before: functions<Hook>(),
  onSuccess: functions<SuccessHook>(),
  onError: functions<ErrorHook>(),
  after: functions<Hook>(),
} satisfies Record<keyof HandlerOptions, v.Shape<unknown>>;

const handlerShape = v.object(handlerShapes, {
  rejected: {
    concurrency: 'is not available yet: this version has no limit per task type across all workers',
  },
});

export type ResolvedHandlerOptions = Partial<v.Parsed<typeof handlerShapes>>;

export function resolveHandlerOptions(taskType: string, input: unknown): ResolvedHandlerOptions {
  return Object.freeze(v.parse(handlerShape, input, `options of handler '${taskType}'`, 'INVALID_OPTIONS'));
}

function functions<T>(): v.Shape<readonly T[]> {
  return v.oneOrMore(v.fn<T>(), Infinity);
}

function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard: unknown = (value as Record<string, unknown>)['~standard'];
  return typeof standard === 'object' && standard !== null && 'validate' in standard;
}
