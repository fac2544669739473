import { validateHeaderName, validateHeaderValue } from 'node:http';
import { unescape } from 'node:querystring';
import { listOf, oneOf, record, wholeNumber, type Reader } from '../config/readers.js';
import { copyPlainData } from '../domain/payload.js';
import { kindOf, readPayload, texts } from './payload-readers.js';

/** A request as a payload asks for it. */
export interface UrlRequest {
  /** Without user and password: those have become a header. */
  readonly url: URL;
  readonly method: string;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Statuses that count as success; undefined for 200 to 299. */
  readonly expect: readonly number[] | undefined;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
const EXPECTED = 'a URL, or { url, method, headers, body, expect }';

/** They belong to the connection or are computed. `expect` would let the server hold the body back. */
const REFUSED_HEADERS = [
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['host', 'content-length', 'expect'],
];
const OWN_HEADERS = ['idempotency-key', 'x-chronos-fence'];

interface Fields {
  url: URL;
  method: (typeof METHODS)[number];
  headers: Record<string, string>;
  body: unknown;
  expect: readonly number[];
}

const readFields = record<Fields>({
  url: readUrl,
  method: (value, path, faults) =>
    oneOf(...METHODS)(typeof value === 'string' ? value.toUpperCase() : value, path, faults),
  headers: readHeaders,
  body: (value, path, faults) => {
    const copied = copyPlainData(value, path);
    if ('copy' in copied) return copied.copy;
    for (const { path: at, fault } of copied.faults) faults.push(`${at} ${fault}`);
    return undefined;
  },
  expect: listOf(wholeNumber(200, 599)),
});

/** Throws `INVALID_PAYLOAD`. */
export function readUrlPayload(payload: unknown): UrlRequest {
  return readPayload(typeof payload === 'string' ? { url: payload } : payload, readRequest, EXPECTED);
}

const readRequest: Reader<UrlRequest> = (payload, path, faults) => {
  const fields = readFields(payload, path, faults);
  if (fields === undefined || faults.length > 0) return undefined;
  const { url, method = 'GET', headers = {}, body, expect } = fields;
  if (url === undefined) {
    faults.push(`${path}.url is missing`);
    return undefined;
  }
  // A driver gives back null for what was never set.
  if (body === undefined || body === null) {
    return { url: bare(url), method, headers: { ...basicAuth(url), ...headers }, body: undefined, expect };
  }
  if (method === 'GET' || method === 'HEAD') {
    faults.push(`${path}.body cannot be sent with ${method}: set ${path}.method to 'POST', for one`);
  }
  const [type, text] =
    typeof body === 'string'
      ? ['text/plain; charset=utf-8', body]
      : ['application/json', JSON.stringify(body)];
  return {
    url: bare(url),
    method,
    headers: { ...basicAuth(url), 'content-type': type, ...headers },
    body: text,
    expect,
  };
};

function readUrl(value: unknown, path: string, faults: string[]): URL | undefined {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (url !== undefined && isHttp(url)) return url;
  const came =
    url !== undefined
      ? `one that starts with ${url.protocol}`
      : typeof value === 'string'
        ? 'a string that is none'
        : kindOf(value);
  faults.push(`${path} must be a URL that starts with http:// or https://, got ${came}`);
  return undefined;
}

export function isHttp({ protocol }: URL): boolean {
  return protocol === 'http:' || protocol === 'https:';
}

/** Without user, password and fragment. */
export function bare(url: URL): URL {
  return Object.assign(new URL(url), { username: '', password: '', hash: '' });
}

/** As a header, so that a redirect to another origin drops it like the others. */
function basicAuth({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const credentials = `${unescape(username)}:${unescape(password)}`;
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}

function readHeaders(value: unknown, path: string, faults: string[]): Record<string, string> | undefined {
  const headers = texts(headerFault)(value, path, faults);
  if (headers === undefined) return undefined;
  const entries = Object.entries(headers).map(([name, content]) => [name.toLowerCase(), content] as const);
  const lower = Object.fromEntries(entries);
  if (Object.keys(lower).length < entries.length) {
    faults.push(`${path} has a name twice, in upper and lower case: leave one of them out`);
  }
  return lower;
}

function headerFault(given: string, value: string): string | undefined {
  const name = given.toLowerCase();
  if (OWN_HEADERS.includes(name)) return 'is set by Chronos: leave it out';
  if (REFUSED_HEADERS.includes(name)) return 'is set by the connection: leave it out';
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return undefined;
  } catch {
    return 'is no header: its name or its value has characters that HTTP forbids';
  }
}
