import { lookup as resolve } from 'node:dns';
import * as http from 'node:http';
import * as https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { ChronosError } from '../../domain/errors.js';
import { UnrecoverableError } from '../../domain/job/control-flow.js';
import type { HostAllowlist } from './host-allowlist.js';
import { isHttp, withoutCredentials } from './url-payload.js';

/** One request; a redirect leads to the next one. */
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
  // There is no lookup for an address.
  if (isIP(host) !== 0 && !hosts.allowsAddress(host)) throw refused(host, host);
  const { request } = url.protocol === 'https:' ? https : http;
  return new Promise((resolveWith, reject) => {
    const sent = request(url, { method, headers, signal, agent: false, lookup: guardedLookup(hosts) });
    sent.once('response', resolveWith);
    // Not `once`: an error after the response must not be uncaught.
    sent.on('error', reject);
    // There is no error event when the server switches to another protocol.
    sent.once('close', () => reject(new Error('the connection was closed')));
    sent.end(body);
  });
}

/** Resolves a name to those of its addresses that jobs may reach. */
export function guardedLookup(hosts: HostAllowlist): LookupFunction {
  return (host, options, callback) => {
    resolve(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, []);
      const allowed = hosts.allowsName(host)
        ? found
        : found.filter(({ address }) => hosts.allowsAddress(address));
      const [first] = allowed;
      if (first === undefined) return callback(refused(host, ...found.map(({ address }) => address)), []);
      if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

function refused(host: string, ...addresses: string[]): ChronosError {
  const is = addresses.includes(host) ? `${host} is` : `${host} resolves to ${addresses.join(', ')},`;
  return new UnrecoverableError(
    'URL_REFUSED',
    `${is} not a public address, and jobs may only reach public ones: ` +
      `to allow it, add the host, its address or its block to the Scheduler option urlHosts`,
  );
}

const REDIRECTS = [301, 302, 303, 307, 308];
const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization'];
const BODY_HEADERS = ['content-type', 'content-encoding', 'content-language', 'content-location'];

/** The request that a redirect asks for; undefined if the response is not a redirect. */
export function nextHop(from: Hop, status: number, location: string | undefined): Hop | undefined {
  if (!REDIRECTS.includes(status) || location === undefined) return undefined;
  const url = redirectTarget(from.url, location);
  const keepsBody = status === 307 || status === 308 || from.method === 'GET' || from.method === 'HEAD';
  const dropped = [
    ...(url.origin === from.url.origin ? [] : CREDENTIALS),
    ...(keepsBody ? [] : BODY_HEADERS),
  ];
  const headers = Object.fromEntries(
    Object.entries(from.headers).filter(([name]) => !dropped.includes(name)),
  );
  return keepsBody ? { ...from, url, headers } : { url, headers, method: 'GET', body: undefined };
}

function redirectTarget(from: URL, location: string): URL {
  if (!URL.canParse(location, from.href)) {
    throw new ChronosError(
      'URL_FAILED',
      `${showUrl(from)} redirects to something that is not a URL: ask its owner, or request the target itself`,
    );
  }
  const url = withoutCredentials(new URL(location, from));
  if (!isHttp(url)) {
    throw new UnrecoverableError(
      'URL_REFUSED',
      `${showUrl(from)} redirects to ${url.protocol}, which is not followed: only http: and https: are`,
    );
  }
  if (from.protocol === 'https:' && url.protocol === 'http:') {
    throw new UnrecoverableError(
      'URL_REFUSED',
      `${showUrl(from)} redirects from https to ${showUrl(url)}, which is not encrypted: request that URL itself if you mean it`,
    );
  }
  return url;
}

/** For messages: without the query, which may contain secrets. */
export function showUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname.length > 200 ? `${pathname.slice(0, 200)}…` : pathname}`;
}
