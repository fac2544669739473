import type { Duration } from '../domain/duration.js';
import { MAX_KEY_LENGTH } from '../domain/identifiers.js';
import type { Instant } from '../domain/instant.js';
import type { RetryPolicy } from '../domain/job/backoff.js';
import {
  described,
  duration,
  flag,
  instant,
  integer,
  name,
  object,
  parse,
  refine,
  type Shape,
  type Shapes,
  text,
} from '../domain/validation.js';
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

export interface ResolvedDispatchOptions {
  delay?: number;
  at?: Date;
  priority: number;
  queue: string;
  key?: string;
  retries?: Partial<RetryPolicy>;
  timeout?: number;
  maxRunningTime?: number;
  hold: boolean;
}

const MAX_PRIORITY = 1000;
export const priorityShape = described(
  integer(0, MAX_PRIORITY),
  `lower is more urgent; default ${DEFAULT_PRIORITY}`,
);

const COMMON: Omit<Shapes<ResolvedDispatchOptions>, 'at'> = {
  delay: duration(),
  priority: priorityShape,
  queue: name,
  key: described(text(MAX_KEY_LENGTH), 'becomes part of the id: the same key again returns the existing job'),
  retries: retryShape,
  timeout: duration({ min: 1 }),
  maxRunningTime: duration({ min: 1 }),
  hold: described(flag, 'true: it waits until it is released'),
};

export function dispatchShapes(timezone: string): Shapes<ResolvedDispatchOptions> {
  return { ...COMMON, at: instant(timezone) };
}

type ParsedDispatchOptions = Partial<ResolvedDispatchOptions>;

/** By time zone. Every dispatch needs one, and making it takes longer than using it. */
const shapesByZone = new Map<string, Shape<ParsedDispatchOptions>>();

function dispatchShape(timezone: string): Shape<ParsedDispatchOptions> {
  const known = shapesByZone.get(timezone);
  if (known !== undefined) return known;
  const shape = refine(object(dispatchShapes(timezone)), (options, path, errors) => {
    if (options.at !== undefined && options.delay !== undefined)
      errors.push(`${path}.at and ${path}.delay exclude each other: set one of them`);
    return options;
  });
  shapesByZone.set(timezone, shape);
  return shape;
}

export function resolveDispatchOptions(input: unknown, timezone: string): ResolvedDispatchOptions {
  const options = parse(dispatchShape(timezone), input, 'dispatch options', 'INVALID_ARGUMENT');
  return { priority: DEFAULT_PRIORITY, queue: DEFAULT_QUEUE, hold: false, ...options };
}
