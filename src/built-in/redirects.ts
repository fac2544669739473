import { Refused } from '../worker/refused.js';
import { ChronosError } from '../domain/errors.js';
import { bare, isHttp } from './url-payload.js';

/** One request on the way to the answer. */
export interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

const STATUSES = [301, 302, 303, 307, 308];
const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization'];
const OF_THE_BODY = ['content-type', 'content-encoding', 'content-language', 'content-location'];

/** Where an answer sends the request next; undefined when the answer is the last. */
export function nextHop(from: Hop, status: number, location: string | undefined): Hop | undefined {
  if (!STATUSES.includes(status) || location === undefined) return undefined;
  const url = targetOf(from.url, location);
  const bodyGoesOn = status === 307 || status === 308 || from.method === 'GET' || from.method === 'HEAD';
  const dropped = [
    ...(url.origin === from.url.origin ? [] : CREDENTIALS),
    ...(bodyGoesOn ? [] : OF_THE_BODY),
  ];
  const headers = Object.fromEntries(
    Object.entries(from.headers).filter(([name]) => !dropped.includes(name)),
  );
  return bodyGoesOn ? { ...from, url, headers } : { url, headers, method: 'GET', body: undefined };
}

function targetOf(from: URL, location: string): URL {
  if (!URL.canParse(location, from.href)) {
    throw new ChronosError(
      'URL_FAILED',
      `${showUrl(from)} redirects to something that is no URL: ask its owner, or request the target itself`,
    );
  }
  const url = bare(new URL(location, from));
  if (!isHttp(url)) {
    throw new Refused(
      'URL_REFUSED',
      `${showUrl(from)} redirects to ${url.protocol}, which is not followed: only http: and https: are`,
    );
  }
  if (from.protocol === 'https:' && url.protocol === 'http:') {
    throw new Refused(
      'URL_REFUSED',
      `${showUrl(from)} redirects from https to ${showUrl(url)}, which is not encrypted: request that itself if it is meant`,
    );
  }
  return url;
}

/** For messages: a query may have secrets in it. */
export function showUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname.length > 200 ? `${pathname.slice(0, 200)}…` : pathname}`;
}
