import type { IncomingMessage } from 'node:http';
import { ChronosError } from '../../domain/errors.js';
import type { HandlerFunction, JobContext } from '../../domain/job/handler.js';
import { BoundedOutput } from './bounded-output.js';
import { HostAllowlist } from './host-allowlist.js';
import { type Hop, nextHop, sendRequest, showUrl } from './http-client.js';
import { parseUrlPayload, type UrlRequest } from './url-payload.js';

export interface UrlResult {
  readonly status: number;
  readonly headers: { readonly 'content-type'?: string };
  /** The first 64 KiB, read as UTF-8. */
  readonly body: string;
  /** True if the body was longer. */
  readonly cut: boolean;
  /** How many redirects were followed. */
  readonly redirects: number;
}

const MAX_REDIRECTS = 3;
/** The connection is closed after this many bytes. */
const MAX_BYTES = 1024 * 1024;
const MAX_SHOWN_BODY = 500;

/** The built-in task type `url`. `hosts`: names, addresses and blocks that jobs may reach although they are not public. */
export function urlHandler({ hosts }: { hosts: readonly string[] }): HandlerFunction<unknown> {
  const allowlist = new HostAllowlist(hosts);
  return (payload, job) => runUrl(parseUrlPayload(payload), job, allowlist);
}

/** Throws `URL_REFUSED`, `URL_FAILED`, or the signal's reason if the job is aborted. */
async function runUrl(request: UrlRequest, job: JobContext, hosts: HostAllowlist): Promise<UrlResult> {
  job.signal.throwIfAborted();
  let hop: Hop = { ...request, headers: { 'user-agent': 'chronos', ...request.headers, ...jobHeaders(job) } };
  try {
    for (let redirects = 0; ; redirects++) {
      const response = await sendRequest(hop, hosts, job.signal);
      const { statusCode: status = 0, headers } = response;
      const next = isExpected(request, status) ? undefined : nextHop(hop, status, headers.location);
      if (next === undefined) return await readResult(request, hop, response, redirects);
      response.destroy();
      if (redirects === MAX_REDIRECTS) {
        throw failed(hop, `redirects again, but at most ${MAX_REDIRECTS} redirects are followed`);
      }
      hop = next;
    }
  } catch (error) {
    job.signal.throwIfAborted();
    if (error instanceof ChronosError) throw error;
    throw failed(hop, `did not respond: ${reasonOf(error)}`, { cause: error });
  }
}

/** Percent-encodes characters of the job's id that a header cannot contain. */
function jobHeaders({ id, fence }: JobContext): Record<string, string> {
  return {
    'idempotency-key': id.replace(/[^\x21-\x24\x26-\x7e]/gu, encodeURIComponent),
    'x-chronos-fence': String(fence),
  };
}

function isExpected({ expect }: UrlRequest, status: number): boolean {
  return expect?.includes(status) ?? (status >= 200 && status <= 299);
}

async function readResult(
  request: UrlRequest,
  hop: Hop,
  response: IncomingMessage,
  redirects: number,
): Promise<UrlResult> {
  const body = new BoundedOutput();
  for await (const chunk of response) {
    body.add(chunk as Buffer);
    if (body.total > MAX_BYTES) break;
  }
  const { statusCode: status = 0, headers } = response;
  if (!isExpected(request, status)) {
    const expected = request.expect?.join(', ') ?? '200 to 299';
    throw failed(hop, `returned ${status}, expected ${expected}; ${showBody(body.text)}`);
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

function showBody(body: string): string {
  if (body === '') return 'the body is empty';
  return `the body${body.length > MAX_SHOWN_BODY ? ' starts with' : ''}: ${body.slice(0, MAX_SHOWN_BODY).toWellFormed()}`;
}

function failed({ method, url }: Hop, what: string, options?: { cause: unknown }): ChronosError {
  return new ChronosError('URL_FAILED', `${method} ${showUrl(url)} ${what}`, options);
}

/** An AggregateError (one error per address) has no message of its own. */
function reasonOf(error: unknown): string {
  const { message, code, errors } = error as NodeJS.ErrnoException & { errors?: Error[] };
  if (message !== '') return message;
  return errors?.map((one) => one.message).join(', ') ?? String(code);
}
