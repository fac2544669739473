import type { Duration } from '../domain/duration.js';
import { MAX_KEY_LENGTH } from '../domain/identifiers.js';
import type { Instant } from '../domain/instant.js';
import * as v from '../domain/validation.js';
import { type RetryOptions, retryShape } from './handler-options.js';
import { DEFAULT_PRIORITY, DEFAULT_QUEUE } from './options.js';

/** How one job is dispatched. */
export interface DispatchOptions {
  /** Run it this long from now. */
  delay?: Duration;
  /** Run it at this instant; text without a zone is in the application's time zone. */
  at?: Instant;
  /** 0–1000, lower is more urgent. Default 100. */
  priority?: number;
  /** Default `'default'`. */
  queue?: string;
  /** Becomes part of the job's id: dispatching the same key again returns the existing job. */
  key?: string;
  /** Overrides the handler's `retries`. */
  retries?: RetryOptions;
  /** Overrides the handler's `timeout` of one attempt. */
  timeout?: Duration;
  /** How long the job may take from its first start, over all attempts. Default none. */
  maxRunningTime?: Duration;
  /** Create it PENDING: it waits for `unhold`. */
  hold?: boolean;
}

const MAX_PRIORITY = 1000;
export const priorityShape = v.described(
  v.integer(0, MAX_PRIORITY),
  `lower is more urgent; default ${DEFAULT_PRIORITY}`,
);

const COMMON = {
  delay: v.duration(),
  priority: priorityShape,
  queue: v.name,
  key: v.described(
    v.text(MAX_KEY_LENGTH),
    'becomes part of the id: the same key again returns the existing job',
  ),
  retries: retryShape,
  timeout: v.duration({ min: 1 }),
  maxRunningTime: v.duration({ min: 1 }),
  hold: v.described(v.flag, 'true: the job is PENDING until `unhold`'),
};

type ParsedDispatchOptions = v.Parsed<typeof COMMON> & { at: Date };

type ResolvedDispatchOptions = Partial<ParsedDispatchOptions> &
  Pick<ParsedDispatchOptions, 'priority' | 'queue' | 'hold'>;

export function dispatchShapes(timezone: string): v.Shapes<ParsedDispatchOptions> {
  return { ...COMMON, at: v.instant(timezone) };
}

/** By time zone. Every dispatch uses a shape, and creating one takes longer than using it. */
const shapesByZone = new Map<string, v.Shape<Partial<ParsedDispatchOptions>>>();

export function resolveDispatchOptions(input: unknown, timezone: string): ResolvedDispatchOptions {
  let shape = shapesByZone.get(timezone);
  if (shape === undefined) {
    shape = v.refine(v.object(dispatchShapes(timezone)), (options, path, errors) => {
      if (options.at !== undefined && options.delay !== undefined)
        errors.push(`${path}.at and ${path}.delay exclude each other: set one of them`);
      return options;
    });
    shapesByZone.set(timezone, shape);
  }
  const options = v.parse(shape, input, 'dispatch options', 'INVALID_ARGUMENT');
  return { priority: DEFAULT_PRIORITY, queue: DEFAULT_QUEUE, hold: false, ...options };
}
