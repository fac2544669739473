import { BlockList, isIP } from 'node:net';
import { ChronosError } from '../../domain/errors.js';

/** Private, shared, loopback, link-local, multicast, documentation, test, unspecified and reserved blocks. */
const NOT_PUBLIC_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const;

/** Global unicast, NAT64, and IPv4-mapped addresses. All other IPv6 addresses are not public. */
const MAYBE_PUBLIC_IPV6 = [
  ['2000::', 3],
  ['64:ff9b::', 96],
  ['::ffff:0:0', 96],
] as const;

/** Exceptions within the blocks above: protocol assignments (with Teredo) and documentation. */
const NOT_PUBLIC_IPV6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['3fff::', 20],
] as const;

const maybePublic = new BlockList();
for (const [net, bits] of MAYBE_PUBLIC_IPV6) maybePublic.addSubnet(net, bits, 'ipv6');

const notPublic = new BlockList();
for (const [net, bits] of NOT_PUBLIC_IPV6) notPublic.addSubnet(net, bits, 'ipv6');
for (const [net, bits] of NOT_PUBLIC_IPV4) {
  // An IPv4 rule also applies to ::ffff:…. NAT64 and 6to4 addresses contain the IPv4 address and lead to the same machine.
  notPublic.addSubnet(net, bits, 'ipv4');
  notPublic.addSubnet(`64:ff9b::${net}`, 96 + bits, 'ipv6');
  notPublic.addSubnet(`2002:${hexadecimal(net)}::`, 16 + bits, 'ipv6');
}

/** The hosts that `url` jobs may reach: public addresses, and those in the option `urlHosts`. */
export class HostAllowlist {
  readonly #names = new Set<string>();
  readonly #addresses = new BlockList();

  /** Host names, IP addresses and CIDR blocks. */
  constructor(allowed: readonly string[]) {
    for (const entry of allowed) this.#allow(entry);
  }

  allowsName(name: string): boolean {
    return this.#names.has(plainName(name));
  }

  allowsAddress(address: string): boolean {
    const plain = plainAddress(address);
    const family = familyOf(plain);
    if (family === undefined) return false;
    if (this.#addresses.check(plain, family)) return true;
    if (family === 'ipv6' && !maybePublic.check(plain, family)) return false;
    return !notPublic.check(plain, family);
  }

  #allow(entry: string): void {
    const [address = '', bits, ...rest] = plainAddress(entry).split('/');
    const family = familyOf(address);
    if (family !== undefined && bits === undefined) return this.#addresses.addAddress(address, family);
    if (family !== undefined && rest.length === 0 && isPrefix(bits, family)) {
      return this.#addresses.addSubnet(address, Number(bits), family);
    }
    if (family === undefined && /^[\w-]+(\.[\w-]+)*\.?$/.test(entry) && !isNumeric(entry)) {
      return void this.#names.add(plainName(entry));
    }
    throw new ChronosError(
      'INVALID_OPTIONS',
      `'${entry}' in urlHosts is not a host: use a name like 'intranet.example', without a port, ` +
        "an address like '10.0.0.7', or a block like '10.0.0.0/8'",
    );
  }
}

type Family = 'ipv4' | 'ipv6';

function familyOf(address: string): Family | undefined {
  return ({ 4: 'ipv4', 6: 'ipv6' } as const)[isIP(address)];
}

function isPrefix(bits: string | undefined, family: Family): boolean {
  return bits !== undefined && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 'ipv4' ? 32 : 128);
}

/** For example 10.0.0 or 0x7f000001: URL parsing converts these to addresses, so they would never match as names. */
function isNumeric(name: string): boolean {
  return /(^|\.)(\d+|0x[\da-f]*)\.?$/i.test(name);
}

/** Without the trailing dot of the root domain. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

/** Without the brackets of a URL, and without the zone that resolvers add to link-local addresses. */
function plainAddress(address: string): string {
  return address.replace(/^\[(.*)\]$/, '$1').replace(/%.*$/, '');
}

/** `127.0.0.1` is `7f00:0001`. */
function hexadecimal(address: string): string {
  return Buffer.from(address.split('.').map(Number))
    .toString('hex')
    .replace(/^(....)/, '$1:');
}
