import { lookup as resolve } from 'node:dns';
import * as http from 'node:http';
import * as https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { ChronosError } from '../../domain/errors.js';
import { UnrecoverableChronosError } from '../../domain/job/control-flow.js';
import type { HostAllowlist } from './host-allowlist.js';
import { isHttp, withoutCredentials } from './url-payload.js';

/** One request of a chain of redirects. */
export interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/**
 * Sends one request over its own connection. Rejects with `URL_REFUSED` if jobs may not reach the address. Names are
 * checked in the same lookup that the connection uses, so that a second DNS response cannot bypass the check.
 */
export async function sendRequest(
  { url, method, headers, body }: Hop,
  hosts: HostAllowlist,
  signal: AbortSignal,
): Promise<http.IncomingMessage> {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  // Node does not look up an IP address, so guardedLookup() is not called.
  if (isIP(host) !== 0 && !hosts.allowsAddress(host)) throw addressNotAllowed(host, host);
  const { request } = url.protocol === 'https:' ? https : http;
  return new Promise((resolveWith, reject) => {
    const sent = request(url, { method, headers, signal, agent: false, lookup: guardedLookup(hosts) });
    sent.once('response', resolveWith);
    // Not `once`: a second error would have no listener and crash the process.
    sent.on('error', reject);
    // No error is emitted when the server switches to another protocol.
    sent.once('close', () => reject(new Error('the connection was closed')));
    sent.end(body);
  });
}

/** A DNS lookup that returns only addresses that jobs may reach. */
export function guardedLookup(hosts: HostAllowlist): LookupFunction {
  return (host, options, callback) => {
    resolve(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, []);
      const allowed = hosts.allowsName(host)
        ? found
        : found.filter(({ address }) => hosts.allowsAddress(address));
      const [first] = allowed;
      if (first === undefined)
        return callback(addressNotAllowed(host, ...found.map(({ address }) => address)), []);
      if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

function addressNotAllowed(host: string, ...addresses: string[]): ChronosError {
  const is = addresses.includes(host) ? `${host} is` : `${host} resolves to ${addresses.join(', ')},`;
  return new UnrecoverableChronosError(
    'URL_REFUSED',
    `${is} not a public address, and jobs may only reach public ones: ` +
      `to allow it, add the host, its address or its block to the Scheduler option urlHosts`,
  );
}

const REDIRECTS = [301, 302, 303, 307, 308];
const BODY_HEADERS = ['content-type', 'content-encoding', 'content-language', 'content-location'];
/** All that another origin gets: any other header (`authorization`, `x-api-key` …) may contain a secret of the first one. */
const HARMLESS_HEADERS = [
  ...BODY_HEADERS,
  ...['accept', 'accept-language', 'user-agent', 'idempotency-key', 'x-chronos-fence'],
];

/** The request that a redirect asks for; undefined if the response is not a redirect. */
export function nextHop(from: Hop, status: number, location: string | undefined): Hop | undefined {
  if (!REDIRECTS.includes(status) || location === undefined) return undefined;
  const url = redirectTarget(from.url, location);
  const keepsBody = status === 307 || status === 308 || from.method === 'GET' || from.method === 'HEAD';
  const isKept = (name: string): boolean =>
    (url.origin === from.url.origin || HARMLESS_HEADERS.includes(name)) &&
    (keepsBody || !BODY_HEADERS.includes(name));
  const headers = Object.fromEntries(Object.entries(from.headers).filter(([name]) => isKept(name)));
  return keepsBody ? { ...from, url, headers } : { url, headers, method: 'GET', body: undefined };
}

function redirectTarget(from: URL, location: string): URL {
  if (!URL.canParse(location, from.href)) {
    throw new ChronosError(
      'URL_FAILED',
      `${showUrl(from)} redirects to a Location that is not a valid URL: request the target directly`,
    );
  }
  const url = withoutCredentials(new URL(location, from));
  if (!isHttp(url)) {
    throw new UnrecoverableChronosError(
      'URL_REFUSED',
      `${showUrl(from)} redirects to ${url.protocol}, which is not followed: only http: and https: are`,
    );
  }
  if (from.protocol === 'https:' && url.protocol === 'http:') {
    throw new UnrecoverableChronosError(
      'URL_REFUSED',
      `${showUrl(from)} redirects from https to ${showUrl(url)}, which is not encrypted: to allow that, request the http URL directly`,
    );
  }
  return url;
}

/** For messages: without the query, which may contain secrets. */
export function showUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname.length > 200 ? `${pathname.slice(0, 200)}…` : pathname}`;
}
