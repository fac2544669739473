import { JOB_STATUSES, type JobStatus } from '../domain/job.js';
import { checkJobId } from '../domain/names.js';
import { EXECUTION_OUTCOMES, type ExecutionDocument } from '../domain/execution.js';
import { optionsError } from './options-error.js';
import {
  matching,
  name,
  oneOf,
  record,
  throwing,
  wholeNumber,
  type Reader,
  type Readers,
} from './readers.js';

const DEFAULT_PAGE = 20;
const LARGEST_PAGE = 200;
const LONGEST_CURSOR = 2000;
const MOST_DETAILS = 20;

export interface PageOptions {
  /** Default 20, at most 200. */
  limit?: number;
  /** `next` of the page before. */
  after?: string;
}

/** Which jobs; all of what is said must hold. */
export interface JobFilterOptions {
  status?: JobStatus;
  queue?: string;
  taskType?: string;
  /** The id of the schedule that made them. */
  schedule?: string;
  userId?: string;
  /** What their ids begin with. */
  idPrefix?: string;
}

/** Which attempts; all of what is said must hold. */
export interface ExecutionFilterOptions {
  jobId?: string;
  taskType?: string;
  queue?: string;
  workerId?: string;
  outcome?: ExecutionDocument['outcome'];
}

/** Which entries of the audit collection; all of what is said must hold. */
export interface AuditFilterOptions {
  who?: string;
  /** The id of the job or schedule that was changed. */
  target?: string;
}

/** Something that somebody did. */
export interface AuditEntry {
  who: string;
  action: string;
  /** The id of what was changed. */
  target?: string;
  /** Which were changed, where that was said by a filter. */
  filter?: Readonly<Record<string, string>>;
  counts?: Readonly<Record<string, number>>;
  requestId?: string;
}

/** A page that was asked for, complete. */
export interface Page {
  limit: number;
  after: string | undefined;
}

// Strings of one kind or another and nothing else: an object would be an operator in a query.
const text = name();
const id = throwing((value) => {
  checkJobId(value);
  return value;
});

const JOB_FILTER: Readers<Required<JobFilterOptions>> = {
  status: oneOf(...JOB_STATUSES),
  queue: text,
  taskType: text,
  schedule: text,
  userId: text,
  idPrefix: id,
};

const EXECUTION_FILTER: Readers<Required<ExecutionFilterOptions>> = {
  jobId: id,
  taskType: text,
  queue: text,
  workerId: text,
  outcome: oneOf(...EXECUTION_OUTCOMES),
};

const AUDIT_FILTER: Readers<Required<AuditFilterOptions>> = { who: text, target: id };

const PAGE: Readers<Required<PageOptions>> = {
  limit: wholeNumber(1, LARGEST_PAGE),
  after: matching('the text that came as `next` with the page before', isCursor),
};

const readFilter = record<Required<JobFilterOptions>>(JOB_FILTER);
const readJobs = record<Required<JobFilterOptions & PageOptions>>({ ...JOB_FILTER, ...PAGE });
const readExecutions = record<Required<ExecutionFilterOptions & PageOptions>>({
  ...EXECUTION_FILTER,
  ...PAGE,
});
const readEntry = record<Required<AuditEntry>>({
  who: text,
  action: text,
  target: id,
  filter: flat('text', isText),
  counts: flat('numbers', Number.isFinite as (value: unknown) => value is number),
  requestId: text,
});
const readAudit = record<Required<AuditFilterOptions & PageOptions>>({ ...AUDIT_FILTER, ...PAGE });

export function readJobFilter(input: unknown, where: string): JobFilterOptions {
  return checked((faults) => readFilter(input, where, faults));
}

export function readJobQuery(input: unknown, where: string): Page & { filter: JobFilterOptions } {
  return split(checked((faults) => readJobs(input, where, faults)));
}

export function readExecutionQuery(input: unknown): Page & { filter: ExecutionFilterOptions } {
  return split(checked((faults) => readExecutions(input, 'listExecutions() query', faults)));
}

export function readAuditQuery(input: unknown): Page & { filter: AuditFilterOptions } {
  return split(checked((faults) => readAudit(input, 'listAudit() query', faults)));
}

export function readAuditEntry(input: unknown): AuditEntry {
  const entry = checked((faults) => {
    const read = readEntry(input, 'audit() entry', faults);
    for (const key of ['who', 'action'] as const)
      if (read !== undefined && read[key] === undefined && faults.length === 0)
        faults.push(`audit() entry.${key} is needed`);
    return read as AuditEntry | undefined;
  });
  return entry;
}

/** An object with a few plain values. */
function flat<T>(expected: string, accepts: (value: unknown) => value is T): Reader<Record<string, T>> {
  const isFlat = (value: unknown): value is Record<string, T> =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.keys(value).length <= MOST_DETAILS &&
    Object.entries(value).every(([key, detail]) => /^\w{1,100}$/.test(key) && accepts(detail));
  return matching(`an object of at most ${MOST_DETAILS} words with ${expected}`, isFlat);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 1000 && value.isWellFormed();
}

function split<F extends object>(given: F & PageOptions): Page & { filter: F } {
  const { limit = DEFAULT_PAGE, after, ...filter } = given;
  return { limit, after, filter: filter as unknown as F };
}

function isCursor(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_CURSOR;
}

function checked<T extends object>(read: (faults: string[]) => T | undefined): T {
  const faults: string[] = [];
  const values = read(faults);
  if (faults.length > 0 || values === undefined) throw optionsError('INVALID_ARGUMENT', faults);
  return values;
}
