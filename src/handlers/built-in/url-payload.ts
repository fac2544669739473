import { validateHeaderName, validateHeaderValue } from 'node:http';
import { unescape } from 'node:querystring';
import { copyPlainData } from '../../domain/plain-data.js';
import {
  custom,
  integer,
  kindOf,
  listOf,
  object,
  oneOf,
  refine,
  requiring,
  type Shape,
  textMap,
} from '../../domain/validation.js';
import { parsePayload } from '../payload.js';

export interface UrlRequest {
  /** Without user and password, which are sent as a header. */
  readonly url: URL;
  readonly method: string;
  /** With names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Statuses that count as success; undefined for 200 to 299. */
  readonly expect: readonly number[] | undefined;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
const EXPECTED = 'a URL, or { url, method, headers, body, expect }';

/** Headers that Node sets. `expect` would let the server delay the body. */
const CONNECTION_HEADERS = [
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

const method = oneOf(...METHODS);
const body: Shape<unknown> = {
  schema: {},
  read: (value, path, errors) => {
    const copied = copyPlainData(value, path);
    if ('copy' in copied) return copied.copy;
    errors.push(...copied.errors);
    return undefined;
  },
};

const fields = requiring(
  object<Fields>({
    url: refine(custom<string>(findUrlError), (url) => new URL(url)),
    method: {
      ...method,
      read: (value, path, errors) =>
        method.read(typeof value === 'string' ? value.toUpperCase() : value, path, errors),
    },
    headers: refine(textMap(findHeaderError), toLowerCaseNames),
    body,
    expect: listOf(integer(200, 599)),
  }),
  { url: 'set it to the URL to request' },
);

const request = refine(fields, ({ url, method = 'GET', headers = {}, body, expect }, path, errors) => {
  // A stored payload may have null for a body that was not set.
  const hasBody = body !== undefined && body !== null;
  if (hasBody && (method === 'GET' || method === 'HEAD'))
    errors.push(`${path}.body cannot be sent with ${method}: set ${path}.method to 'POST', for example`);
  if (errors.length > 0) return undefined;
  const type = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json';
  return {
    url: withoutCredentials(url),
    method,
    headers: { ...basicAuth(url), ...(hasBody && { 'content-type': type }), ...headers },
    body: !hasBody ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    expect,
  };
});

/** Throws `INVALID_PAYLOAD`. */
export function parseUrlPayload(payload: unknown): UrlRequest {
  return parsePayload(request, typeof payload === 'string' ? { url: payload } : payload, EXPECTED);
}

function findUrlError(value: unknown): string | undefined {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (url !== undefined && isHttp(url)) return undefined;
  const received =
    url !== undefined
      ? `a URL that starts with ${url.protocol}`
      : typeof value === 'string'
        ? 'a string that is not a URL'
        : kindOf(value);
  return `must be a URL that starts with http:// or https://, got ${received}`;
}

export function isHttp({ protocol }: URL): boolean {
  return protocol === 'http:' || protocol === 'https:';
}

export function withoutCredentials(url: URL): URL {
  return Object.assign(new URL(url), { username: '', password: '', hash: '' });
}

/** Sent as a header, because redirects to another origin drop it. */
function basicAuth({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const credentials = `${unescape(username)}:${unescape(password)}`;
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}

function toLowerCaseNames(
  headers: Record<string, string>,
  path: string,
  errors: string[],
): Record<string, string> {
  const entries = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const lowerCase = Object.fromEntries(entries);
  if (Object.keys(lowerCase).length < entries.length)
    errors.push(`${path} has the same name in upper and lower case: leave one of the two out`);
  return lowerCase;
}

function findHeaderError(key: string, value: string): string | undefined {
  const name = key.toLowerCase();
  if (OWN_HEADERS.includes(name)) return 'is set by Chronos: leave it out';
  if (CONNECTION_HEADERS.includes(name)) return 'is set by the connection: leave it out';
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return undefined;
  } catch {
    return 'is not a valid header: its name or value contains characters that HTTP does not allow';
  }
}
