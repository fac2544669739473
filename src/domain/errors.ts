import { isList, tryOr } from './language.js';
import { jsonText, truncateUtf8 } from './text.js';

/** Stable between versions; programs match on these. */
export type ErrorCode =
  | 'INVALID_OPTIONS'
  | 'INVALID_ARGUMENT'
  | 'INVALID_PAYLOAD'
  | 'INVALID_ENVIRONMENT'
  | 'HANDLER_INVALID'
  | 'HANDLER_EXISTS'
  | 'MIDDLEWARE_INVALID'
  | 'JOB_NOT_FOUND'
  | 'JOB_TIMEOUT'
  | 'JOB_RAN_TOO_LONG'
  | 'JOB_CRASHED'
  | 'JOB_RETURNED_FALSE'
  | 'JOB_CANCELLED'
  | 'JOB_SKIPPED'
  | 'JOB_EXPIRED'
  | 'RESULT_CUT'
  | 'WORKER_NOT_FOUND'
  | 'WORKER_STOPPING'
  | 'OUTCOME_REFUSED'
  | 'LOCK_HELD'
  | 'LOCK_LOST'
  | 'WAIT_TIMEOUT'
  | 'MONGODB_UNREACHABLE'
  | 'MONGODB_ERROR'
  | 'COLLECTION_TAKEN'
  | 'NOT_INSTALLED'
  | 'NEWER_INSTALLATION'
  | 'NOT_AUTHORIZED'
  | 'QUERY_TOO_SLOW'
  | 'AUDIT_UNWRITABLE'
  | 'WRONG_STATE'
  | 'INVALID_JOB'
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

/** The message says what was expected, what was received, and where. */
export class ChronosError extends Error {
  override readonly name = 'ChronosError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(redactCredentials(message), options);
    this.code = code;
  }
}

/** Hides user and password of connection strings, for messages and log lines. */
export function redactCredentials(text: string): string {
  // The pattern has no scheme, because matching one takes quadratic time on a long word.
  return text.replace(/:\/\/[^\s/]*@/g, '://***@');
}

/** Describes a rejected value after "got". Never throws, even if the value is a revoked proxy. */
export function describeValue(value: unknown): string {
  // Redacted before it is cut: a cut connection string may not be recognized.
  if (typeof value === 'string') return `'${redactCredentials(value.slice(0, 10_000)).slice(0, 80)}'`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return 'a bigint';
  if (typeof value !== 'object' || value === null) return String(value).slice(0, 80);
  if (!isList(value)) return 'an object';
  return tryOr(() => value.length === 0, false) ? 'an empty list' : 'a list';
}

/** An error as it is stored with a job or an execution. */
export interface StoredError {
  name: string;
  message: string;
  code: string | null;
  stack: string | null;
}

const MAX_ERROR_BYTES = 16 * 1024;

/** Turns anything that was thrown into an Error. Never throws itself. */
export function toError(thrown: unknown): Error {
  if (tryOr(() => thrown instanceof Error, false)) return thrown as Error;
  return new Error(typeof thrown === 'string' ? thrown : `a non-error was thrown: ${jsonText(thrown)}`);
}

/** The error itself, or a copy without the credentials in its message and stack. */
export function redactError(error: Error): Error {
  const { name, message, stack = '' } = error;
  const redacted = { message: redactCredentials(message), stack: redactCredentials(stack) };
  if (redacted.message === message && redacted.stack === stack) return error;
  return Object.assign(new Error(redacted.message), { name, stack: redacted.stack });
}

/** Never throws, even if properties of the error are not text or cannot be read. */
export function storedError(error: Error): StoredError {
  const properties = error as unknown as Record<string, unknown>;
  const [name, message, stack, code] = ['name', 'message', 'stack', 'code'].map((key) =>
    tryOr(() => properties[key], undefined),
  );
  return {
    name: truncateUtf8(toText(name), 256),
    message: truncateUtf8(redactCredentials(toText(message)), MAX_ERROR_BYTES),
    code: typeof code === 'string' || typeof code === 'number' ? truncateUtf8(String(code), 256) : null,
    stack: typeof stack === 'string' ? truncateUtf8(redactCredentials(stack), MAX_ERROR_BYTES) : null,
  };
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : jsonText(value);
}
