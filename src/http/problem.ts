import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { ChronosError, type ErrorCode, redactCredentials } from '../domain/errors.js';
import { truncateUtf8 } from '../domain/text.js';
import { isResultUnknown } from '../store/mongo-errors.js';

/** An error response (RFC 9457). `code` is for programs, `detail` for people. */
export interface ProblemDocument {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  requestId: string;
}

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

const MAX_DETAIL_BYTES = 2000;

/** Thrown for errors of the HTTP layer itself. */
export class HttpProblem extends Error {
  override readonly name = 'HttpProblem';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The HTTP status of each error code. Codes that are not listed are internal errors: 500. */
const STATUSES: Partial<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: 422,
  INVALID_OPTIONS: 422,
  INVALID_PAYLOAD: 422,
  INVALID_JOB: 409,
  INVALID_SCHEDULE: 422,
  SCHEDULE_NEVER_RUNS: 422,
  JOB_NOT_FOUND: 404,
  SCHEDULE_NOT_FOUND: 404,
  WORKER_NOT_FOUND: 404,
  SCHEDULE_EXISTS: 409,
  SCHEDULE_IN_CODE: 409,
  SCHEDULE_FROZEN: 409,
  WRONG_STATE: 409,
  LOCK_HELD: 409,
  AUDIT_UNWRITABLE: 503,
  MONGODB_UNREACHABLE: 503,
  NOT_INSTALLED: 503,
  QUERY_TOO_SLOW: 503,
  WORKER_STOPPING: 503,
};

/** Requests that Node rejects before fastify sees them. */
const UNPARSABLE: Readonly<Record<string, readonly [status: string, code: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'REQUEST_TIMEOUT'],
};

const TITLES: Readonly<Record<number, string>> = {
  400: 'The request does not match the OpenAPI document',
  401: 'A valid token is required',
  403: 'This token does not allow that',
  404: 'Not found',
  409: 'The current state does not allow this',
  413: 'The body is too large',
  415: 'The body must be JSON',
  421: 'Wrong host',
  422: 'The request cannot be processed',
  503: 'Temporarily unavailable',
};

/** An error of fastify: validation, parser, limits. */
interface FrameworkError extends Error {
  statusCode?: number;
  validation?: readonly { instancePath: string; message?: string; params?: Record<string, unknown> }[];
  validationContext?: string;
}

/** `isUnexpected`: the error should be logged. */
export function toProblem(
  error: Error,
  requestId: string,
): { problem: ProblemDocument; isUnexpected: boolean } {
  const { status, code, detail } = toCause(error);
  const problem = {
    type: `urn:chronos:problem:${code}`,
    title: TITLES[status] ?? 'Something went wrong',
    status,
    detail: truncateUtf8(redactCredentials(detail), MAX_DETAIL_BYTES),
    code,
    requestId,
  };
  return { problem, isUnexpected: status === 500 || code === 'AUDIT_UNWRITABLE' };
}

type Cause = Pick<ProblemDocument, 'status' | 'code' | 'detail'>;

const UNEXPECTED = 'unexpected error: the log of the worker has the details under this request id';

function toCause(error: Error): Cause {
  if (error instanceof HttpProblem) return { status: error.status, code: error.code, detail: error.message };
  if (error instanceof ChronosError) {
    const status = STATUSES[error.code] ?? 500;
    return { status, code: error.code, detail: status === 500 ? UNEXPECTED : error.message };
  }
  if (isResultUnknown(error)) {
    const detail =
      'MongoDB did not answer. It is unknown whether a change took effect: check before you repeat it';
    return { status: 503, code: 'MONGODB_UNREACHABLE', detail };
  }
  return toFrameworkCause(error);
}

const FRAMEWORK_CAUSES: Readonly<Record<number, Cause>> = {
  413: { status: 413, code: 'BODY_TOO_LARGE', detail: 'the body must not be larger than 1 MB' },
  415: { status: 415, code: 'NOT_JSON', detail: 'the content type must be application/json' },
  503: {
    status: 503,
    code: 'TOO_SLOW',
    detail:
      'the request took too long. It is unknown whether a change took effect: check before you repeat it',
  },
};

function toFrameworkCause(error: FrameworkError): Cause {
  const { statusCode: status = 500, validation, validationContext = 'request', message } = error;
  const [invalid] = validation ?? [];
  if (invalid !== undefined) {
    const { additionalProperty } = invalid.params ?? {};
    const which = typeof additionalProperty === 'string' ? `: ${truncateUtf8(additionalProperty, 60)}` : '';
    const detail = `${validationContext}${truncateUtf8(invalid.instancePath, 200)} ${invalid.message ?? 'is invalid'}${which}`;
    return { status: 400, code: 'INVALID_REQUEST', detail };
  }
  const known = FRAMEWORK_CAUSES[status];
  if (known !== undefined) return known;
  if (status >= 400 && status < 500) return { status, code: 'INVALID_REQUEST', detail: message };
  return { status: 500, code: 'UNEXPECTED', detail: UNEXPECTED };
}

/** A client that does not close its side of a rejected connection must not keep it. */
const LINGER_MS = 1000;

/** Responds to a request that is not valid HTTP and therefore reaches no route, and closes the connection. */
export function answerUnparsable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, code] = UNPARSABLE[error.code ?? ''] ?? ['400 Bad Request', 'INVALID_REQUEST'];
  const title = 'The request is not valid HTTP';
  const body = JSON.stringify({
    ...{ type: `urn:chronos:problem:${code}`, title, status: Number.parseInt(status), detail: title, code },
    requestId: randomUUID(),
  });
  const head = [
    `HTTP/1.1 ${status}`,
    `content-type: ${PROBLEM_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'x-content-type-options: nosniff',
    'cache-control: no-store',
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  socket.setTimeout(LINGER_MS, () => socket.destroy());
}
