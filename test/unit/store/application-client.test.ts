import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import { clientWarnings, threadAccess } from '../../../src/store/application-client.js';

const URI = 'mongodb://db1,db2:27018/app?replicaSet=rs&w=1';
const WITH_USER = 'mongodb://root:p%40ss@db1/app?authSource=admin';

/** What the thread adds to the connection string of a client with these options. */
function copied(options: mongo.MongoClientOptions, uri = URI): unknown {
  const access = threadAccess(new mongo.MongoClient(uri, options));
  return 'reason' in access ? access.reason : access.driverOptions;
}

/** The options that differ between the client and one that a thread would open. */
function differences(options: mongo.MongoClientOptions, uri = URI): string[] {
  const client = new mongo.MongoClient(uri, options);
  const access = threadAccess(client);
  if ('reason' in access) assert.fail(access.reason);
  assert.equal(access.uri, uri);
  const opened = new mongo.MongoClient(access.uri, structuredClone(access.driverOptions));
  const plain = (value: unknown): string =>
    typeof value === 'function' ? 'a function' : (JSON.stringify(value) ?? 'undefined');
  return Object.keys(client.options).filter((name) => {
    // The source is the same, whoever specified it.
    if (name === 'userSpecifiedAuthSource') return false;
    const [theirs, ours] = [client, opened].map((one) => Reflect.get(one.options, name) as unknown);
    return plain(theirs) !== plain(ours);
  });
}

describe('the renewal thread of a client', () => {
  it('needs nothing but the connection string if all else is in it, or does not matter', () => {
    assert.deepEqual(copied({}), {});
    assert.deepEqual(copied({}, WITH_USER), {});
    assert.deepEqual(copied({}, 'mongodb+srv://root:secret@cluster.example.com/app?tlsInsecure=true'), {});
    assert.deepEqual(
      copied({
        ...{
          writeConcern: { w: 1 },
          readPreference: 'secondary',
          ignoreUndefined: true,
          promoteLongs: false,
          retryWrites: false,
        },
        ...{ maxPoolSize: 1, minPoolSize: 1, socketTimeoutMS: 1, appName: 'shop', monitorCommands: true },
        ...{ pkFactory: { createPk: () => 1 } },
      }),
      {},
    );
  });

  it('gets the credentials and all options that decide how to connect', () => {
    const auth = { username: 'me', password: 'p@ss' };
    for (const [options, uri] of [
      [{ auth, authSource: 'admin' }],
      [{ auth }],
      [{ auth }, WITH_USER],
      [{ auth, authMechanism: 'SCRAM-SHA-1' }],
      [{ authMechanism: 'MONGODB-X509', tls: true, tlsCertificateKeyFile: '/etc/me.pem' }],
      [
        {
          authMechanism: 'MONGODB-OIDC',
          authMechanismProperties: { ENVIRONMENT: 'azure', TOKEN_RESOURCE: 'api' },
        },
      ],
      [{ auth, authMechanism: 'GSSAPI', authMechanismProperties: { SERVICE_NAME: 'db' } }],
      [{ tls: true, tlsCAFile: '/etc/ca.pem', tlsAllowInvalidCertificates: true }],
      [{ tls: true, ca: 'PEM', cert: 'PEM', key: 'PEM', passphrase: 'secret', servername: 'db' }],
      [{ tls: true, tlsInsecure: true }],
      [{ tls: true, tlsCertificateKeyFilePassword: 'secret' }],
      [{ replicaSet: 'other', compressors: ['zlib'], zlibCompressionLevel: 5, family: 6 }],
      [{ serverApi: { version: '1', deprecationErrors: true } }],
      [{ proxyHost: 'proxy', proxyPort: 1080, proxyUsername: 'me', proxyPassword: 'secret' }],
      [{ directConnection: true }, 'mongodb://db1/app'],
      [{ srvMaxHosts: 2, srvServiceName: 'db' }, 'mongodb+srv://cluster.example.com/app'],
    ] as [mongo.MongoClientOptions, string?][])
      assert.deepEqual(differences(options, uri), [], JSON.stringify(options));
  });

  it('is not possible with functions and other options that cannot be copied', () => {
    const reason = (name: string): string => `options of the client cannot be copied to a thread: ${name}`;
    const noop = (): undefined => undefined;
    assert.equal(copied({ lookup: noop }), reason('lookup'));
    assert.equal(copied({ tls: true, checkServerIdentity: noop }), reason('checkServerIdentity'));
    assert.equal(
      copied({
        authMechanism: 'MONGODB-OIDC',
        authMechanismProperties: { OIDC_CALLBACK: () => Promise.resolve({ accessToken: 'x' }) },
      }),
      reason('credentials'),
    );
    const client = new mongo.MongoClient(URI);
    const encrypting = Object.create(client, {
      options: { value: { ...client.options, autoEncryption: {}, somethingNew: 1 } },
    }) as mongo.MongoClient;
    assert.deepEqual(threadAccess(encrypting), { reason: reason('autoEncryption, somethingNew') });
    const hidden = Object.create(client, { s: { value: {} } }) as mongo.MongoClient;
    assert.deepEqual(threadAccess(hidden), { reason: 'the connection string of the client is unknown' });
  });
});

describe('the warnings about a client', () => {
  it('name the options that cannot be overridden for each operation', () => {
    const warnings = (options: mongo.MongoClientOptions): string[] =>
      clientWarnings(new mongo.MongoClient(URI, options), 10);
    assert.deepEqual(warnings({}), []);
    assert.deepEqual(warnings({ maxPoolSize: 0, socketTimeoutMS: 6000 }), []);
    assert.match(warnings({ retryWrites: false }).join(), /retryWrites or retryReads turned off/);
    assert.match(warnings({ maxPoolSize: 9 }).join(), /maxPoolSize of 9, less than the 10/);
    assert.match(warnings({ socketTimeoutMS: 5000 }).join(), /socketTimeoutMS of 5000, too short/);
  });
});
