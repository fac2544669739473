import { cutText, jsonText } from './text.js';

/** Stable codes: programs match on these, people read the message. */
export type ErrorCode =
  | 'INVALID_OPTIONS'
  | 'INVALID_ARGUMENT'
  | 'INVALID_PAYLOAD'
  | 'INVALID_ENVIRONMENT'
  | 'HANDLER_INVALID'
  | 'HANDLER_EXISTS'
  | 'JOB_NOT_FOUND'
  | 'JOB_TIMEOUT'
  | 'JOB_RAN_TOO_LONG'
  | 'JOB_CRASHED'
  | 'JOB_RETURNED_FALSE'
  | 'JOB_CANCELLED'
  | 'JOB_SKIPPED'
  | 'WORKER_STOPPING'
  | 'OUTCOME_REFUSED'
  | 'LOCK_HELD'
  | 'LOCK_LOST'
  | 'WAIT_TIMEOUT'
  | 'MONGODB_UNREACHABLE'
  | 'COLLECTION_TAKEN'
  | 'NOT_INSTALLED'
  | 'QUERY_TOO_SLOW'
  | 'AUDIT_UNWRITABLE'
  | 'WRONG_STATE'
  | 'INVALID_SCHEDULE'
  | 'SCHEDULE_NEVER_RUNS'
  | 'SCHEDULE_EXISTS'
  | 'SCHEDULE_FROZEN'
  | 'SCHEDULE_NOT_FOUND'
  | 'SCHEDULE_IN_CODE'
  | 'DEPENDENCY_UNKNOWN'
  | 'DEPENDENCY_CYCLE'
  | 'COMMAND_UNKNOWN'
  | 'SHELL_REFUSED'
  | 'SHELL_FAILED'
  | 'URL_REFUSED'
  | 'URL_FAILED'
  | 'EVENT_UNHEARD';

/** Says what was expected, what came, and where. `code` never changes between versions. */
export class ChronosError extends Error {
  override readonly name = 'ChronosError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(hideCredentials(message), options);
    this.code = code;
  }
}

/** User and password of a connection string never reach a message or a log line. */
export function hideCredentials(text: string): string {
  // Without the scheme in the pattern: matching that takes quadratic time on a long word.
  return text.replace(/:\/\/[^\s/]*@/g, '://***@');
}

/** An error as it is kept in a job or an execution. */
export interface StoredError {
  name: string;
  message: string;
  code: string | null;
  stack: string | null;
}

const LONGEST_ERROR_BYTES = 16 * 1024;

/** Anything a handler may throw, as an Error. Never throws itself. */
export function toError(thrown: unknown): Error {
  if (isError(thrown)) return thrown;
  return new Error(typeof thrown === 'string' ? thrown : `a non-error was thrown: ${jsonText(thrown)}`);
}

/** The error itself, or one that says the same without the credentials in it. */
export function withoutCredentials(error: Error): Error {
  const { name, message, stack = '' } = error;
  const hidden = { message: hideCredentials(message), stack: hideCredentials(stack) };
  if (hidden.message === message && hidden.stack === stack) return error;
  return Object.assign(new Error(hidden.message), { name, stack: hidden.stack });
}

/** Never throws: an error may have parts that are no text, or cannot be read. */
export function storedError(error: Error): StoredError {
  const [name, message, stack, code] = ['name', 'message', 'stack', 'code'].map((part) => read(error, part));
  return {
    name: cutText(text(name), 256),
    message: cutText(hideCredentials(text(message)), LONGEST_ERROR_BYTES),
    code: typeof code === 'string' || typeof code === 'number' ? cutText(String(code), 256) : null,
    stack: typeof stack === 'string' ? cutText(hideCredentials(stack), LONGEST_ERROR_BYTES) : null,
  };
}

function isError(thrown: unknown): thrown is Error {
  try {
    return thrown instanceof Error;
  } catch {
    return false;
  }
}

function read(error: Error, part: string): unknown {
  try {
    return (error as unknown as Record<string, unknown>)[part];
  } catch {
    return undefined;
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : jsonText(value);
}
