import { MAX_JOB_ID_LENGTH } from '../domain/identifiers.js';
import { EXECUTION_OUTCOMES, type ExecutionDocument } from '../domain/job/execution.js';
import { JOB_STATUSES, type JobStatus } from '../domain/job/job.js';
import {
  described,
  integer,
  matching,
  name,
  object,
  oneOf,
  parse,
  requiring,
  type Shape,
  type Shapes,
  text,
} from '../domain/validation.js';

export const DEFAULT_PAGE = 20;
export const MAX_PAGE = 200;
const MAX_CURSOR_LENGTH = 2000;
const CURSOR = /^[A-Za-z0-9_-]+$/;
const MAX_DETAILS = 20;

export interface PageOptions {
  /** Default 20, at most 200. */
  limit?: number;
  /** `next` of the previous page. */
  after?: string;
}

/** Which jobs: those that match every field. */
export interface JobFilterOptions {
  status?: JobStatus;
  queue?: string;
  taskType?: string;
  /** The id of the schedule that made them. */
  schedule?: string;
  userId?: string;
  /** The first characters of their ids. */
  idPrefix?: string;
}

/** Which attempts: those that match every field. */
export interface ExecutionFilterOptions {
  jobId?: string;
  taskType?: string;
  queue?: string;
  workerId?: string;
  outcome?: ExecutionDocument['outcome'];
}

/** Which entries of the audit collection: those that match every field. */
export interface AuditFilterOptions {
  who?: string;
  /** The id of the job or schedule that was changed. */
  target?: string;
}

/** One action of a person or program. */
export interface AuditEntry {
  who: string;
  action: string;
  /** The id of what was changed. */
  target?: string;
  /** The filter that selected what was changed. */
  filter?: Readonly<Record<string, string>>;
  counts?: Readonly<Record<string, number>>;
  requestId?: string;
}

/** A page to read, with its defaults. */
export interface Page {
  limit: number;
  after: string | undefined;
}

type PageQuery<F> = Page & { filter: F };

// Filters are strings and nothing else: an object would be an operator in a query.
export const jobId = text(MAX_JOB_ID_LENGTH);

export const pageShapes: Shapes<PageOptions> = {
  limit: limitShape(DEFAULT_PAGE),
  after: matching('the text that came as `next` with the previous page', isCursor, {
    ...described(text(MAX_CURSOR_LENGTH), '`next` of the previous page').schema,
    pattern: CURSOR.source,
  }),
};

/** The number of entries of one page. */
export function limitShape(byDefault: number): Shape<number> {
  return described(integer(1, MAX_PAGE), `default ${byDefault}, at most ${MAX_PAGE}`);
}

export const jobFilterShapes: Shapes<JobFilterOptions> = {
  status: oneOf(...JOB_STATUSES),
  queue: name,
  taskType: name,
  schedule: name,
  userId: name,
  idPrefix: described(jobId, 'the first characters of their ids'),
};

export const jobFilterShape = object<JobFilterOptions>(jobFilterShapes);
export const jobQueryShape = object<JobFilterOptions & PageOptions>({ ...jobFilterShapes, ...pageShapes });
export const executionQueryShape = object<ExecutionFilterOptions & PageOptions>({
  jobId,
  taskType: name,
  queue: name,
  workerId: name,
  outcome: oneOf(...EXECUTION_OUTCOMES),
  ...pageShapes,
});
export const auditQueryShape = object<AuditFilterOptions & PageOptions>({
  who: name,
  target: described(jobId, 'the id of the job or schedule that was changed'),
  ...pageShapes,
});
const auditEntryShape = requiring(
  object<AuditEntry>({
    who: name,
    action: name,
    target: jobId,
    filter: details('text', isText),
    counts: details('numbers', Number.isFinite as (value: unknown) => value is number),
    requestId: name,
  }),
  { who: 'set it to the name of the person or program', action: 'set it to what was done' },
);

export function parseJobFilter(input: unknown, where: string): JobFilterOptions {
  return parse(jobFilterShape, input, where, 'INVALID_ARGUMENT');
}

export function parseJobQuery(input: unknown, where: string): PageQuery<JobFilterOptions> {
  return toPageQuery(parse(jobQueryShape, input, where, 'INVALID_ARGUMENT'));
}

export function parseExecutionQuery(input: unknown): PageQuery<ExecutionFilterOptions> {
  return toPageQuery(parse(executionQueryShape, input, 'listExecutions() query', 'INVALID_ARGUMENT'));
}

export function parseAuditQuery(input: unknown): PageQuery<AuditFilterOptions> {
  return toPageQuery(parse(auditQueryShape, input, 'listAudit() query', 'INVALID_ARGUMENT'));
}

export function parseAuditEntry(input: unknown): AuditEntry {
  return parse(auditEntryShape, input, 'audit() entry', 'INVALID_ARGUMENT');
}

function toPageQuery<F extends object>(query: F & PageOptions): PageQuery<F> {
  const { limit = DEFAULT_PAGE, after, ...filter } = query;
  return { limit, after, filter: filter as unknown as F };
}

/** An object with a few plain values. */
function details<T>(expected: string, accepts: (value: unknown) => value is T): Shape<Record<string, T>> {
  const isValid = (value: unknown): value is Record<string, T> =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.keys(value).length <= MAX_DETAILS &&
    Object.entries(value).every(([key, detail]) => /^\w{1,100}$/.test(key) && accepts(detail));
  return matching(`an object of at most ${MAX_DETAILS} words with ${expected}`, isValid);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 1000 && value.isWellFormed();
}

function isCursor(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_CURSOR_LENGTH && CURSOR.test(value);
}
