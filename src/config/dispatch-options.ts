import type { Duration } from '../domain/duration.js';
import { MAX_KEY_LENGTH } from '../domain/identifiers.js';
import type { Instant } from '../domain/instant.js';
import { memoize } from '../domain/language.js';
import * as v from '../domain/validation.js';
import {
  expiresInShape,
  type RetentionOptions,
  retentionShape,
  type RetryOptions,
  retryShape,
} from './handler-options.js';
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
  /**
   * A job that has not started this long after it was due never starts: it ends `expired`. Default: `expiresIn` of its
   * task type, else never.
   */
  expiresIn?: Duration;
  /** The user it is for; jobs can be listed by user. */
  userId?: string;
  /** Up to ten short labels; jobs can be listed by tag. */
  tags?: readonly string[];
  /** How long it is kept when it has finished. Default: `retention` of its task type, else of the Scheduler. */
  retention?: RetentionOptions;
  /** Create it held: it waits for `unhold`. */
  hold?: boolean;
}

interface ParsedRequest {
  taskType: unknown;
  payload: unknown;
  options: unknown;
}

/** Rejects other fields: a `delay` next to `options` instead of inside would be ignored silently. */
const requestShape = v.object<ParsedRequest>({
  taskType: v.anything,
  payload: v.anything,
  options: v.anything,
});

/** Checks only the form of a request; its content is validated with the job. */
export function parseDispatchRequest(input: unknown): Partial<ParsedRequest> {
  return v.parse(requestShape, input, 'request', 'INVALID_ARGUMENT');
}

const MAX_PRIORITY = 1000;
const MAX_TAGS = 10;
const MAX_TAG_LENGTH = 50;
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
  expiresIn: expiresInShape,
  userId: v.name,
  tags: v.described(v.listOf(v.text(MAX_TAG_LENGTH), { max: MAX_TAGS }), 'labels to list jobs by'),
  retention: retentionShape,
  hold: v.described(v.flag, 'true: the job waits for `unhold`'),
};

type ParsedDispatchOptions = v.Parsed<typeof COMMON> & { at: Date };

type ResolvedDispatchOptions = Partial<ParsedDispatchOptions> &
  Pick<ParsedDispatchOptions, 'priority' | 'queue' | 'hold'>;

export function dispatchShapes(timezone: string): v.Shapes<ParsedDispatchOptions> {
  return { ...COMMON, at: v.instant(timezone) };
}

/** Cached: every dispatch uses a shape, and creating one takes longer than using it. */
const shapeForZone = memoize((timezone: string) =>
  v.refine(v.object(dispatchShapes(timezone)), (options, path, errors) => {
    if (options.at !== undefined && options.delay !== undefined)
      errors.push(`${path}.at and ${path}.delay exclude each other: set one of them`);
    return options;
  }),
);

export function resolveDispatchOptions(input: unknown, timezone: string): ResolvedDispatchOptions {
  const options = v.parse(shapeForZone(timezone), input, 'dispatch options', 'INVALID_ARGUMENT');
  return { priority: DEFAULT_PRIORITY, queue: DEFAULT_QUEUE, hold: false, ...options };
}
