import { cutText } from './text.js';

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
  | 'LOCK_HELD'
  | 'LOCK_LOST'
  | 'WAIT_TIMEOUT'
  | 'MONGODB_UNREACHABLE'
  | 'MONGODB_URI_MISSING'
  | 'WRONG_STATE';

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
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s/]*@/gi, '$1***@');
}

/** An error as it is kept in a job or an execution. */
export interface StoredError {
  name: string;
  message: string;
  code: string | null;
  stack: string | null;
}

export const LONGEST_ERROR_BYTES = 16 * 1024;

/** Anything a handler may throw, as an Error. */
export function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new Error(typeof thrown === 'string' ? thrown : `a non-error was thrown: ${describe(thrown)}`);
}

export function storedError(error: Error): StoredError {
  const code: unknown = (error as { code?: unknown }).code;
  return {
    name: cutText(String(error.name), 256),
    message: cutText(hideCredentials(String(error.message)), LONGEST_ERROR_BYTES),
    code: typeof code === 'string' || typeof code === 'number' ? cutText(String(code), 256) : null,
    stack:
      typeof error.stack === 'string' ? cutText(hideCredentials(error.stack), LONGEST_ERROR_BYTES) : null,
  };
}

function describe(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}
