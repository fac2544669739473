import { lookup as resolve } from 'node:dns';
import * as http from 'node:http';
import * as https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { Refused } from '../worker/refused.js';
import type { ChronosError } from '../domain/errors.js';
import type { ReachableHosts } from './addresses.js';
import type { Hop } from './redirects.js';

/**
 * Sends one request over a connection of its own; rejects with `URL_REFUSED` when it leads where jobs may not go.
 * Names are checked by the very lookup that the connection uses, so that no second answer of the DNS gets past
 * the check.
 */
export async function exchange(
  { url, method, headers, body }: Hop,
  hosts: ReachableHosts,
  signal: AbortSignal,
): Promise<http.IncomingMessage> {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  // No lookup is made for an address.
  if (isIP(host) !== 0 && !hosts.allowsAddress(host)) throw refused(host, host);
  const { request } = url.protocol === 'https:' ? https : http;
  return new Promise((resolveWith, reject) => {
    const sent = request(url, { method, headers, signal, agent: false, lookup: guardedLookup(hosts) });
    sent.once('response', resolveWith);
    // Stays on: an error after the response must not be uncaught.
    sent.on('error', reject);
    // Without an error when the server changes to another protocol.
    sent.once('close', () => reject(new Error('the connection was closed')));
    sent.end(body);
  });
}

/** Gives only the addresses that may be reached. */
export function guardedLookup(hosts: ReachableHosts): LookupFunction {
  return (host, options, callback) => {
    resolve(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, []);
      const good = hosts.allowsName(host)
        ? found
        : found.filter(({ address }) => hosts.allowsAddress(address));
      const [first] = good;
      if (first === undefined) return callback(refused(host, ...found.map(({ address }) => address)), []);
      if (options.all === true) callback(null, good);
      else callback(null, first.address, first.family);
    });
  };
}

function refused(host: string, ...addresses: string[]): ChronosError {
  const is = addresses.includes(host) ? `${host} is` : `${host} resolves to ${addresses.join(', ')},`;
  return new Refused(
    'URL_REFUSED',
    `${is} no public address, and jobs may not reach others: ` +
      `to allow it, add the host, its address or its block to the Scheduler option urlHosts`,
  );
}
