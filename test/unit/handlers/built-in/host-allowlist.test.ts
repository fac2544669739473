import assert from 'node:assert/strict';
import { HostAllowlist } from '../../../../src/handlers/built-in/host-allowlist.js';

const privateAddresses = [
  // This host, private, shared, loopback, link-local with the metadata service of clouds.
  ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.255.255.255', '100.64.0.1', '100.127.255.255'],
  ...['127.0.0.1', '127.255.255.254', '169.254.169.254', '169.254.0.1'],
  ...['172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255'],
  // Special, documentation, benchmarks, multicast, reserved, broadcast.
  ...['192.0.0.1', '192.0.2.1', '192.88.99.1', '198.18.0.1', '198.19.255.255', '198.51.100.1', '203.0.113.1'],
  ...['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  // Unspecified, loopback, unique local, link-local, site-local, multicast, discard, documentation, Teredo.
  ...[
    '::',
    '::1',
    '0:0:0:0:0:0:0:1',
    'fc00::1',
    'fd00::1',
    'fdff:ffff::1',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
  ],
  ...['fec0::1', 'ff02::1', '100::1', '2001:db8::1', '3fff::1', '2001::1', '4000::1', '5f00::1'],
  // IPv4 inside of IPv6: mapped, translated, compatible, NAT64 of both kinds, 6to4.
  ...[
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '::ffff:169.254.169.254',
    '0:0:0:0:0:FFFF:7F00:0001',
  ],
  ...['::ffff:0:127.0.0.1', '::127.0.0.1', '::10.0.0.1', '::8.8.8.8'],
  ...['64:ff9b::127.0.0.1', '64:ff9b::a00:1', '64:ff9b::169.254.169.254', '64:ff9b:1::8.8.8.8'],
  ...['2002:7f00:1::', '2002:a00:1::1', '2002:a9fe:a9fe::1', '2002:c0a8:1::1'],
];

const publicAddresses = [
  ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
  ...['128.0.0.1', '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '192.167.255.255'],
  ...['192.169.0.0', '198.17.255.255', '198.20.0.0', '223.255.255.255'],
  ...['2606:4700:4700::1111', '2001:4860:4860::8888', '2a00::1', '3ffe::1'],
  ...['::ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2002:808:808::1'],
];

describe('HostAllowlist [D2]', () => {
  const emptyList = new HostAllowlist([]);

  it('rejects every address that is not public', () => {
    assert.deepEqual(
      privateAddresses.filter((address) => emptyList.allowsAddress(address)),
      [],
    );
  });

  it('allows public addresses', () => {
    assert.deepEqual(
      publicAddresses.filter((address) => !emptyList.allowsAddress(address)),
      [],
    );
  });

  it('rejects what is not an address, and any name', () => {
    for (const text of ['', 'localhost', '127.1', '300.1.1.1'])
      assert.equal(emptyList.allowsAddress(text), false);
    assert.equal(emptyList.allowsName('example.com'), false);
  });

  it('allows exactly the addresses and blocks that the operator has listed', () => {
    const hosts = new HostAllowlist(['10.0.0.7', '192.168.4.0/22', '[::1]', 'fd12::/16']);
    for (const address of ['10.0.0.7', '192.168.4.1', '192.168.7.255', '::1', 'fd12::9', '::ffff:10.0.0.7']) {
      assert.ok(hosts.allowsAddress(address), address);
    }
    for (const address of ['10.0.0.8', '192.168.8.0', '127.0.0.1', 'fd13::9', '64:ff9b::10.0.0.7']) {
      assert.equal(hosts.allowsAddress(address), false, address);
    }
  });

  it('allows names in any case, with or without the root dot', () => {
    const hosts = new HostAllowlist(['Intranet.Example', 'db_1.internal.', 'localhost']);
    for (const name of ['intranet.example', 'INTRANET.example.', 'db_1.internal', 'localhost.']) {
      assert.ok(hosts.allowsName(name), name);
    }
    for (const name of ['example', 'www.intranet.example', 'intranet.example.com', 'localhost..']) {
      assert.equal(hosts.allowsName(name), false, name);
    }
  });

  it('rejects entries that can never match', () => {
    for (const entry of [
      ...['', 'http://intranet', 'intranet:8080', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1'],
      ...['fd00::/129', '10.0.0', '0x7f000001', '127.1', '*.intranet', 'a..b', 'in tranet', '::1/x'],
    ]) {
      assert.throws(() => new HostAllowlist([entry]), {
        code: 'INVALID_OPTIONS',
        message: /in urlHosts is not a host/,
      });
    }
  });
});
