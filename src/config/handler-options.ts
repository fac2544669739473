import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { RetryPolicy } from '../domain/backoff.js';
import type { Duration } from '../domain/duration.js';
import { optionsError } from './options-error.js';
import { retryReader, type RetryOptions } from './retry-options.js';
import { duration, matching, oneOf, record } from './readers.js';

/** How jobs of one task type run. */
export interface HandlerOptions {
  /** Longest time of one attempt. Default: the Scheduler's `timeout`. */
  timeout?: Duration;
  /** What is left out comes from the Scheduler's `retries`. */
  retries?: RetryOptions;
  /** How long a lock on such a job holds without renewal. Default: the Scheduler's `lockTimeout`. */
  lease?: Duration;
  /** Anything that follows Standard Schema. Checked at dispatch and again before execution. */
  schema?: StandardSchemaV1;
  /** `immediate`: each outcome is written alone, before its slot is free again. Default `batched`: with others that end at the same time. */
  settle?: 'batched' | 'immediate';
}

export interface ResolvedHandlerOptions {
  timeout?: number;
  retries?: Partial<RetryPolicy>;
  lease?: number;
  schema?: StandardSchemaV1;
  settle?: 'batched' | 'immediate';
}

const read = record<Required<ResolvedHandlerOptions>>(
  {
    timeout: duration({ min: 1 }),
    retries: retryReader,
    lease: duration({ min: 500 }),
    schema: matching('a schema that follows Standard Schema', isStandardSchema),
    settle: oneOf('batched', 'immediate'),
  },
  {
    concurrency:
      'is not available yet: a limit per task type across the cluster cannot be promised by this version',
  },
);

export function resolveHandlerOptions(taskType: string, input: unknown): ResolvedHandlerOptions {
  const faults: string[] = [];
  const options = read(input, `options of handler '${taskType}'`, faults);
  if (faults.length > 0) throw optionsError('INVALID_OPTIONS', faults);
  return Object.freeze(options ?? {});
}

function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard: unknown = (value as Record<string, unknown>)['~standard'];
  return typeof standard === 'object' && standard !== null && 'validate' in standard;
}
