import { MAX_JOB_ID_LENGTH } from '../domain/identifiers.js';
import { EXECUTION_OUTCOMES, type ExecutionDocument } from '../domain/job/execution.js';
import { type JobState, STATE_NAMES } from '../domain/job/state.js';
import * as v from '../domain/validation.js';

export const DEFAULT_PAGE = 20;
export const MAX_PAGE = 200;
const MAX_CURSOR_LENGTH = 2000;
const CURSOR = /^[A-Za-z0-9_-]+$/;
const MAX_DETAILS = 20;

/** Which page of a list to read. */
export interface PageOptions {
  /** Default 20, at most 200. */
  limit?: number;
  /** `next` of the previous page. */
  after?: string;
}

/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** Pass this as `after` to get the next page; null on the last page. */
  next: string | null;
}

/** Selects the jobs that match every field. */
export interface JobFilterOptions {
  state?: JobState;
  queue?: string;
  taskType?: string;
  /** The id of the schedule that created the job. */
  schedule?: string;
  userId?: string;
  tag?: string;
  /** Prefix of the job id. */
  idPrefix?: string;
}

/** Selects the attempts that match every field. */
export interface ExecutionFilterOptions {
  jobId?: string;
  taskType?: string;
  queue?: string;
  workerId?: string;
  outcome?: ExecutionDocument['outcome'];
}

/** Selects the audit entries that match every field. */
export interface AuditFilterOptions {
  who?: string;
  /** The id of the job, schedule or worker that was changed, or the name of the queue. */
  target?: string;
}

/** A change that a person or program made. */
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

export interface PageQuery<F> {
  limit: number;
  after: string | undefined;
  filter: F;
}

// Filters accept only strings: MongoDB would take an object for a query operator.
export const jobId = v.text(MAX_JOB_ID_LENGTH);

export const pageShapes: v.Shapes<PageOptions> = {
  limit: limitShape(DEFAULT_PAGE),
  after: v.matching('`next` of the previous page', isCursor, {
    ...v.described(v.text(MAX_CURSOR_LENGTH), '`next` of the previous page').schema,
    pattern: CURSOR.source,
  }),
};

/** How many entries one page has. */
export function limitShape(byDefault: number): v.Shape<number> {
  return v.described(v.integer(1, MAX_PAGE), `default ${byDefault}, at most ${MAX_PAGE}`);
}

export const jobFilterShapes: v.Shapes<JobFilterOptions> = {
  state: v.oneOf(...STATE_NAMES),
  queue: v.name,
  taskType: v.name,
  schedule: v.name,
  userId: v.name,
  tag: v.name,
  idPrefix: v.described(jobId, 'prefix of the job id'),
};

const jobFilterShape = v.object<JobFilterOptions>(jobFilterShapes);
export const jobQueryShape = v.object<JobFilterOptions & PageOptions>({ ...jobFilterShapes, ...pageShapes });
export const executionQueryShape = v.object<ExecutionFilterOptions & PageOptions>({
  jobId,
  taskType: v.name,
  queue: v.name,
  workerId: v.name,
  outcome: v.oneOf(...EXECUTION_OUTCOMES),
  ...pageShapes,
});
export const auditQueryShape = v.object<AuditFilterOptions & PageOptions>({
  who: v.name,
  target: v.described(
    jobId,
    'the id of the job, schedule or worker that was changed, or the name of the queue',
  ),
  ...pageShapes,
});
const auditEntryShape = v.requiring(
  v.object<AuditEntry>({
    who: v.name,
    action: v.name,
    target: jobId,
    filter: details('strings', isShortText),
    counts: details('numbers', Number.isFinite as (value: unknown) => value is number),
    requestId: v.name,
  }),
  { who: 'set it to the name of the person or program', action: 'set it to what was done' },
);

export function parseJobFilter(input: unknown, where: string): JobFilterOptions {
  return v.parse(jobFilterShape, input, where, 'INVALID_ARGUMENT');
}

export function parseJobQuery(input: unknown, where: string): PageQuery<JobFilterOptions> {
  return toPageQuery(v.parse(jobQueryShape, input, where, 'INVALID_ARGUMENT'));
}

export function parseExecutionQuery(input: unknown): PageQuery<ExecutionFilterOptions> {
  return toPageQuery(v.parse(executionQueryShape, input, 'listExecutions() query', 'INVALID_ARGUMENT'));
}

export function parseAuditQuery(input: unknown): PageQuery<AuditFilterOptions> {
  return toPageQuery(v.parse(auditQueryShape, input, 'listAudit() query', 'INVALID_ARGUMENT'));
}

export function parseAuditEntry(input: unknown): AuditEntry {
  return v.parse(auditEntryShape, input, 'audit() entry', 'INVALID_ARGUMENT');
}

export function toPageQuery<F extends object>(query: F & PageOptions): PageQuery<F> {
  const { limit = DEFAULT_PAGE, after, ...filter } = query;
  return { limit, after, filter: filter as unknown as F };
}

/** A small object with values of one kind. */
function details<T>(kind: string, accepts: (value: unknown) => value is T): v.Shape<Record<string, T>> {
  const isValid = (value: unknown): value is Record<string, T> =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.keys(value).length <= MAX_DETAILS &&
    Object.entries(value).every(([key, detail]) => /^\w{1,100}$/.test(key) && accepts(detail));
  return v.matching(`an object with at most ${MAX_DETAILS} keys (letters, digits, _) and ${kind}`, isValid);
}

function isShortText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 1000 && value.isWellFormed();
}

function isCursor(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_CURSOR_LENGTH && CURSOR.test(value);
}
