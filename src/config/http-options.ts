import { isIP, isIPv4 } from 'node:net';
import type { Duration } from '../domain/duration.js';
import {
  duration,
  integer,
  matching,
  object,
  parse,
  refine,
  requiring,
  secret,
} from '../domain/validation.js';

/** Where a worker answers HTTP requests, and who may send them. */
export interface HttpOptions {
  /** 0 means any free port. */
  port: number;
  /** Address to listen on. Anything but this machine's own needs a `token`. Default `'127.0.0.1'`. */
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

export interface ResolvedHttpOptions {
  readonly port: number;
  readonly host: string;
  readonly token: string | undefined;
  readonly readToken: string | undefined;
  readonly maxLoopLag: number;
  readonly maxCycleAge: number | undefined;
}

const DEFAULT_HOST = '127.0.0.1';
const DEFAULT_MAX_LOOP_LAG_MS = 2000;
const TOKEN = 'at least 16 characters of ASCII without spaces';

const tokenShape = secret(TOKEN, isToken);

export const httpShapes = {
  port: integer(0, 65_535),
  host: matching("an address or a host name, like '127.0.0.1' or '0.0.0.0'", isHost),
  token: tokenShape,
  readToken: tokenShape,
  maxLoopLag: duration({ min: 10 }),
  maxCycleAge: duration({ min: 100 }),
};

/** Throws INVALID_OPTIONS with every problem. */
export function resolveHttpOptions(input: unknown): ResolvedHttpOptions {
  const shape = requiring(object(httpShapes), { port: 'set the port to listen on, or 0 for any free one' });
  const safe = refine(shape, (options, path, errors) => {
    const names = { host: `${path}.host`, token: `${path}.token`, readToken: `${path}.readToken` };
    errors.push(...findExposures(options, names));
    return options;
  });
  return {
    host: DEFAULT_HOST,
    token: undefined,
    readToken: undefined,
    maxLoopLag: DEFAULT_MAX_LOOP_LAG_MS,
    maxCycleAge: undefined,
    ...parse(safe, input, 'serveHttp() options', 'INVALID_OPTIONS'),
  };
}

/** Settings that would let strangers in. `names` are what the settings are called where they come from. */
export function findExposures(
  { host, token, readToken }: { host?: string; token?: string; readToken?: string },
  names: { host: string; token: string; readToken: string },
): string[] {
  const errors: string[] = [];
  if (host !== undefined && !isLoopback(host) && token === undefined) {
    errors.push(
      `${names.host} is '${host}', where other machines can reach it: set ${names.token} as well (\`openssl rand -hex 32\` makes one), or leave ${names.host} out to listen on ${DEFAULT_HOST} only`,
    );
  }
  if (token !== undefined && token === readToken) {
    errors.push(
      `${names.readToken} and ${names.token} must differ: otherwise everybody who may read could make changes`,
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
