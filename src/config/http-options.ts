import { isIP, isIPv4 } from 'node:net';
import type { Duration } from '../domain/duration.js';
import * as v from '../domain/validation.js';

/** Where a worker serves HTTP, and which tokens it accepts. */
export interface HttpOptions {
  /** Port to listen on; 0 means any free one. */
  port: number;
  /** Address to listen on. One that other machines can reach needs a `token`. Default `'127.0.0.1'`. */
  host?: string;
  /** A request with this token may read and make changes. At least 16 characters. Default none: no changes. */
  token?: string;
  /** A request with this token may read. Default none: reading needs `token` if that is set, otherwise no token. */
  readToken?: string;
  /** `/readyz` answers 503 if the event loop was recently blocked for longer than this. Default `'2s'`. */
  maxLoopLag?: Duration;
  /** `/readyz` answers 503 if no database request succeeded for this long. Default three heartbeats, at least `'30s'`. */
  maxCycleAge?: Duration;
}

const DEFAULT_HOST = '127.0.0.1';
const DEFAULT_MAX_LOOP_LAG_MS = 2000;

const tokenShape = v.secret('at least 16 characters of ASCII without spaces', isToken);

export const httpShapes = {
  port: v.integer(0, 65_535),
  host: v.matching("an address or a host name, like '127.0.0.1' or '0.0.0.0'", isHost),
  token: tokenShape,
  readToken: tokenShape,
  maxLoopLag: v.duration({ min: 10 }),
  maxCycleAge: v.duration({ min: 100 }),
} satisfies Record<keyof HttpOptions, v.Shape<unknown>>;

type ParsedHttpOptions = v.Parsed<typeof httpShapes>;

export type ResolvedHttpOptions = Partial<ParsedHttpOptions> &
  Pick<ParsedHttpOptions, 'port' | 'host' | 'maxLoopLag'>;

/** Throws INVALID_OPTIONS with every problem. */
export function resolveHttpOptions(input: unknown): ResolvedHttpOptions {
  const shape = v.requiring(v.object(httpShapes), {
    port: 'set the port to listen on, or 0 for any free one',
  });
  const safe = v.refine(shape, (options, path, errors) => {
    const names = { host: `${path}.host`, token: `${path}.token`, readToken: `${path}.readToken` };
    errors.push(...findExposures(options, names));
    return options;
  });
  return {
    host: DEFAULT_HOST,
    maxLoopLag: DEFAULT_MAX_LOOP_LAG_MS,
    ...v.parse(safe, input, 'serveHttp() options', 'INVALID_OPTIONS'),
  };
}

/** Finds settings that would expose the API. `names`: what the error messages call the settings. */
export function findExposures(
  { host, token, readToken }: { host?: string; token?: string; readToken?: string },
  names: { host: string; token: string; readToken: string },
): string[] {
  const errors: string[] = [];
  if (host !== undefined && !isLoopback(host) && token === undefined) {
    errors.push(
      `${names.host} is '${host}', which other machines can reach: set ${names.token} as well (\`openssl rand -hex 32\` creates one), or leave ${names.host} out to listen on ${DEFAULT_HOST} only`,
    );
  }
  if (token !== undefined && token === readToken) {
    errors.push(
      `${names.readToken} and ${names.token} must differ: otherwise a token for reading could also make changes`,
    );
  }
  return errors;
}

/** True if only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  return name === 'localhost' || name === '::1' || (isIPv4(name) && name.startsWith('127.'));
}

function isHost(value: unknown): value is string {
  return (
    typeof value === 'string' && (isIP(value) !== 0 || /^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?$/i.test(value))
  );
}

function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{16,512}$/.test(value);
}
