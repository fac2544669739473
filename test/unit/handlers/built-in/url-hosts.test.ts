import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { HostAllowlist } from '../../../../src/handlers/built-in/host-allowlist.js';
import { guardedLookup } from '../../../../src/handlers/built-in/http-client.js';
import { urlHandler } from '../../../../src/handlers/built-in/url.js';
import { aJobContext } from '../../../support/handlers/job-context.js';
import { closeServers, serve, type TestServer } from '../../../support/handlers/http-server.js';

async function run(payload: unknown, ...hosts: string[]): Promise<unknown> {
  return urlHandler({ hosts })(payload, aJobContext());
}

describe('the hosts that urlHandler may reach [D2]', () => {
  let server: TestServer;
  beforeEach(async () => (server = await serve((_, response) => response.end('inside'))));
  afterEach(closeServers);

  /** Every way to write the address of this server, or of others that are not public. */
  const spellings = [
    ...['127.0.0.1', '127.0.0.1.', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1'],
    ...['017700000001', '127.0.0.01', '0x7F.0x0.0x0.0x1', '%31%32%37.0.0.1', '①②⑦.0.0.1', '127。0。0。1'],
    ...['0', '0.0.0.0', '[::1]', '[0:0:0:0:0:0:0:1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]'],
    ...['[64:ff9b::127.0.0.1]', '[2002:7f00:1::]', '[::127.0.0.1]', '[fe80::1]', '[fd00::1]'],
    ...['10.0.0.1', '172.16.0.1', '192.168.0.1', '169.254.169.254', '0xa9fea9fe', '2852039166', '100.64.0.1'],
    ...['224.0.0.1', '255.255.255.255', '[ff02::1]'],
  ];

  for (const host of spellings) {
    it(`do not include http://${host}/`, async () => {
      await assert.rejects(run(`http://${host}:${server.port}/`), {
        code: 'URL_REFUSED',
        message: / is not a public address,.*the Scheduler option urlHosts$/,
      });
      assert.deepEqual(server.requests, []);
    });
  }

  it('do not include a name that resolves to a private address', async () => {
    for (const host of ['localhost', 'LOCALHOST']) {
      await assert.rejects(run(`http://${host}:${server.port}/`), {
        code: 'URL_REFUSED',
        message: /^localhost resolves to .*127\.0\.0\.1.* not a public address/,
      });
    }
    assert.deepEqual(server.requests, []);
  });

  it('include what the operator allows by name, address or block', async () => {
    const named = `http://localhost:${server.port}/`;
    for (const hosts of [['localhost'], ['other', 'LocalHost.'], ['127.0.0.1'], ['127.0.0.0/8']]) {
      assert.ok(await run(named, ...hosts));
    }
    for (const hosts of [['127.0.0.1'], ['127.0.0.0/30']])
      assert.ok(await run(`http://127.1:${server.port}/`, ...hosts));
  });

  it('include nothing else', async () => {
    await assert.rejects(run(server.url, 'localhost'), { code: 'URL_REFUSED' });
    await assert.rejects(run(server.url, '127.0.0.2', '10.0.0.0/8'), { code: 'URL_REFUSED' });
    await assert.rejects(run(`http://localhost:${server.port}/`, 'host', '10.0.0.0/8'), {
      code: 'URL_REFUSED',
    });
  });

  it('are rejected at once when the list is invalid', () => {
    assert.throws(() => urlHandler({ hosts: ['http://intranet/'] }), { code: 'INVALID_OPTIONS' });
  });

  describe('guardedLookup', () => {
    const lookup = (all: boolean, ...hosts: string[]): Promise<string | LookupAddress[]> =>
      new Promise((resolve, reject) => {
        guardedLookup(new HostAllowlist(hosts))('localhost', { all }, (error, address) => {
          if (error === null) resolve(address);
          else reject(error);
        });
      });

    it('returns one address or all of them, as requested', async () => {
      assert.equal(await lookup(false, '127.0.0.1'), '127.0.0.1');
      assert.deepEqual(await lookup(true, '127.0.0.1'), [{ address: '127.0.0.1', family: 4 }]);
      for (const all of [true, false]) await assert.rejects(lookup(all), { code: 'URL_REFUSED' });
    });
  });
});
