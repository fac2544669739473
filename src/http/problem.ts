import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { ChronosError, hideCredentials, type ErrorCode } from '../domain/errors.js';
import { cutText } from '../domain/text.js';
import { isUncertain } from '../store/faults.js';

/** RFC 9457. `code` is for programs, `detail` for people. */
export interface ProblemDocument {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  requestId: string;
}

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

const LONGEST_DETAIL = 2000;

/** What goes wrong before anything reaches the scheduler. */
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

/** What an error of the scheduler means to somebody who asked; what is not listed is nobody's fault but ours. */
const STATUSES: Partial<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: 422,
  INVALID_OPTIONS: 422,
  INVALID_PAYLOAD: 422,
  INVALID_SCHEDULE: 422,
  SCHEDULE_NEVER_RUNS: 422,
  JOB_NOT_FOUND: 404,
  SCHEDULE_NOT_FOUND: 404,
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

const BROKEN: Readonly<Record<string, readonly [status: string, code: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'REQUEST_TIMEOUT'],
};

const TITLES: Readonly<Record<number, string>> = {
  400: 'The request is not what the document of this API describes',
  401: 'A token is needed',
  403: 'This token may not do that',
  404: 'There is no such thing',
  409: 'Its state does not allow that',
  413: 'The body is too large',
  415: 'The body has to be JSON',
  421: 'This is not the host that was meant',
  422: 'What was asked for is not possible',
  503: 'Not able to answer now',
};

/** An error of fastify: of its validation, its parser, its limits. */
interface FrameworkError extends Error {
  statusCode?: number;
  validation?: readonly { instancePath: string; message?: string; params?: Record<string, unknown> }[];
  validationContext?: string;
}

/** The document for anything that was thrown; `isUnexpected` when somebody should look into it. */
export function problemOf(
  error: Error,
  requestId: string,
): { problem: ProblemDocument; isUnexpected: boolean } {
  const { status, code, detail } = explain(error);
  const problem = {
    type: `urn:chronos:problem:${code}`,
    title: TITLES[status] ?? 'Something went wrong',
    status,
    detail: cutText(hideCredentials(detail), LONGEST_DETAIL),
    code,
    requestId,
  };
  return { problem, isUnexpected: status === 500 || code === 'AUDIT_UNWRITABLE' };
}

function explain(error: Error): { status: number; code: string; detail: string } {
  if (error instanceof HttpProblem) return { status: error.status, code: error.code, detail: error.message };
  if (error instanceof ChronosError) {
    const status = STATUSES[error.code] ?? 500;
    return { status, code: error.code, detail: status === 500 ? UNEXPECTED : error.message };
  }
  if (isUncertain(error)) {
    const detail =
      'MongoDB did not answer. Whether a change took effect is not known: look before asking for it again';
    return { status: 503, code: 'MONGODB_UNREACHABLE', detail };
  }
  return explainFramework(error);
}

const UNEXPECTED = 'An error that nobody expected; the log of the worker has it under the id of this request';

function explainFramework({ statusCode = 500, validation, validationContext, message }: FrameworkError): {
  status: number;
  code: string;
  detail: string;
} {
  const [fault] = validation ?? [];
  if (fault !== undefined) {
    const { additionalProperty } = fault.params ?? {};
    const which = typeof additionalProperty === 'string' ? `: ${cutText(additionalProperty, 60)}` : '';
    const detail = `${validationContext ?? 'request'}${cutText(fault.instancePath, 200)} ${fault.message ?? 'is wrong'}${which}`;
    return { status: 400, code: 'INVALID_REQUEST', detail };
  }
  if (statusCode === 413) return { status: 413, code: 'BODY_TOO_LARGE', detail: 'a body has at most 1 MB' };
  if (statusCode === 415) return { status: 415, code: 'NOT_JSON', detail: 'send application/json' };
  if (statusCode === 503)
    return {
      status: 503,
      code: 'TOO_SLOW',
      detail: 'it took too long; whether a change took effect is not known',
    };
  if (statusCode >= 400 && statusCode < 500)
    return { status: statusCode, code: 'INVALID_REQUEST', detail: message };
  return { status: 500, code: 'UNEXPECTED', detail: UNEXPECTED };
}

/** What cannot be read as HTTP reaches no route: this is all the answer there is. */
export function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, code] = BROKEN[error.code ?? ''] ?? ['400 Bad Request', 'INVALID_REQUEST'];
  const title = 'This is not a request that can be read';
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
}
