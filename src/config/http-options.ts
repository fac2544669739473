import { isIP, isIPv4 } from 'node:net';
import type { Duration } from '../domain/duration.js';
import { optionsError } from './options-error.js';
import { duration, matching, record, secret, wholeNumber } from './readers.js';

/** Where a worker answers requests, and whom. */
export interface HttpOptions {
  /** 0 takes any port that is free. */
  port: number;
  /** Address to listen on. Anything but this machine's own needs a `token`. Default `'127.0.0.1'`. */
  host?: string;
  /** Whoever shows it may change things. At least 16 characters. Default none: nobody may. */
  token?: string;
  /** Whoever shows it may read. Default none: with a `token` only that one may, without one everybody on this machine. */
  readToken?: string;
  /** Not ready when the event loop was blocked for longer in the last seconds. Default `'2s'`. */
  maxLoopLag?: Duration;
  /** Not ready when nothing that asks the database went well for longer. Default three heartbeats, at least `'30s'`. */
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
const TOKEN = 'at least 16 characters of ASCII without spaces';

export const portReader = wholeNumber(0, 65_535);
export const hostReader = matching("an address or a host name, like '127.0.0.1' or '0.0.0.0'", isHost);
export const tokenReader = secret(TOKEN, isToken);

const read = record<{ [K in keyof HttpOptions]-?: K extends `max${string}` ? number : HttpOptions[K] }>({
  port: portReader,
  host: hostReader,
  token: tokenReader,
  readToken: tokenReader,
  maxLoopLag: duration({ min: 10 }),
  maxCycleAge: duration({ min: 100 }),
});

/** What the settings are called where they come from. */
export interface HttpNames {
  host: string;
  token: string;
  readToken: string;
}

/** Throws INVALID_OPTIONS with every fault. */
export function resolveHttpOptions(input: unknown): ResolvedHttpOptions {
  const faults: string[] = [];
  const where = 'serveHttp() options';
  const given = read(input, where, faults) ?? {};
  if (given.port === undefined && faults.length === 0)
    faults.push(`${where}.port is needed; 0 takes any port that is free`);
  const names = { host: `${where}.host`, token: `${where}.token`, readToken: `${where}.readToken` };
  faults.push(...exposures(given, names));
  if (faults.length > 0 || given.port === undefined) throw optionsError('INVALID_OPTIONS', faults);
  return {
    port: given.port,
    host: given.host ?? DEFAULT_HOST,
    token: given.token,
    readToken: given.readToken,
    maxLoopLag: given.maxLoopLag ?? 2000,
    maxCycleAge: given.maxCycleAge,
  };
}

/** What would leave the door open. */
export function exposures(
  { host, token, readToken }: { host?: string; token?: string; readToken?: string },
  names: HttpNames,
): string[] {
  const faults: string[] = [];
  if (host !== undefined && !isLoopback(host) && token === undefined) {
    faults.push(
      `${names.host} is '${host}', where other machines can reach it: set ${names.token} as well (\`openssl rand -hex 32\` makes one), or leave ${names.host} out to listen on ${DEFAULT_HOST} only`,
    );
  }
  if (token !== undefined && token === readToken)
    faults.push(
      `${names.readToken} and ${names.token} must differ: whoever may only read could change things`,
    );
  return faults;
}

/** Whether only this machine can reach it. */
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
