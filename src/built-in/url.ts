import type { IncomingMessage } from 'node:http';
import { ChronosError } from '../domain/errors.js';
import type { HandlerFunction, JobContext } from '../worker/handler.js';
import { ReachableHosts } from './addresses.js';
import { CappedText } from './capped-text.js';
import { exchange } from './http-exchange.js';
import { nextHop, showUrl, type Hop } from './redirects.js';
import { readUrlPayload, type UrlRequest } from './url-payload.js';

export interface UrlResult {
  readonly status: number;
  readonly headers: { readonly 'content-type'?: string };
  /** The first 64 KiB, read as UTF-8. */
  readonly body: string;
  /** True when the body was longer. */
  readonly cut: boolean;
  /** Redirects that were followed. */
  readonly redirects: number;
}

export interface UrlHandlerOptions {
  /** Names, addresses and blocks that jobs may reach although they are not public. */
  readonly hosts: readonly string[];
}

const MOST_REDIRECTS = 3;
/** A server that sends more is not listened to any longer. */
const MOST_BYTES = 1024 * 1024;
const SHOWN_BODY = 500;

export function urlHandler({ hosts }: UrlHandlerOptions): HandlerFunction<unknown> {
  const reachable = new ReachableHosts(hosts);
  return (payload, job) => runUrl(readUrlPayload(payload), job, reachable);
}

/** Throws `URL_REFUSED`, `URL_FAILED`, or the reason of the job's signal when it was aborted. */
export async function runUrl(
  request: UrlRequest,
  job: JobContext,
  hosts: ReachableHosts,
): Promise<UrlResult> {
  job.signal.throwIfAborted();
  let hop: Hop = { ...request, headers: { 'user-agent': 'chronos', ...request.headers, ...ownHeaders(job) } };
  try {
    for (let redirects = 0; ; redirects++) {
      const response = await exchange(hop, hosts, job.signal);
      const { statusCode: status = 0, headers } = response;
      const next = isExpected(request, status) ? undefined : nextHop(hop, status, headers.location);
      if (next === undefined) return await resultOf(request, hop, response, redirects);
      response.destroy();
      if (redirects === MOST_REDIRECTS) {
        throw failed(hop, `is redirect number ${redirects + 1}, and only ${MOST_REDIRECTS} are followed`);
      }
      hop = next;
    }
  } catch (error) {
    job.signal.throwIfAborted();
    if (error instanceof ChronosError) throw error;
    throw failed(hop, `gave no answer: ${reasonOf(error)}`, { cause: error });
  }
}

/** The job's id may be any text; what a header cannot hold is written as in a URL. */
function ownHeaders({ id, fence }: JobContext): Record<string, string> {
  return {
    'idempotency-key': id.replace(/[^\x21-\x24\x26-\x7e]/gu, encodeURIComponent),
    'x-chronos-fence': String(fence),
  };
}

function isExpected({ expect }: UrlRequest, status: number): boolean {
  return expect?.includes(status) ?? (status >= 200 && status <= 299);
}

async function resultOf(
  request: UrlRequest,
  hop: Hop,
  response: IncomingMessage,
  redirects: number,
): Promise<UrlResult> {
  const body = new CappedText();
  for await (const chunk of response) {
    body.add(chunk as Buffer);
    if (body.total > MOST_BYTES) break;
  }
  const { statusCode: status = 0, headers } = response;
  if (!isExpected(request, status)) {
    const wanted = request.expect?.join(', ') ?? '200 to 299';
    throw failed(hop, `answered ${status}, expected was ${wanted}; ${said(body.text)}`);
  }
  const type = headers['content-type'];
  return {
    status,
    headers: type === undefined ? {} : { 'content-type': type },
    body: body.text,
    cut: body.dropped > 0,
    redirects,
  };
}

function said(body: string): string {
  if (body === '') return 'the body is empty';
  return `the body${body.length > SHOWN_BODY ? ' starts with' : ''}: ${body.slice(0, SHOWN_BODY).toWellFormed()}`;
}

function failed({ method, url }: Hop, what: string, options?: { cause: unknown }): ChronosError {
  return new ChronosError('URL_FAILED', `${method} ${showUrl(url)} ${what}`, options);
}

/** An error that stands for one attempt per address has no message of its own. */
function reasonOf(error: unknown): string {
  const { message, code, errors } = error as NodeJS.ErrnoException & { errors?: Error[] };
  if (message !== '') return message;
  return errors?.map((one) => one.message).join(', ') ?? String(code);
}
