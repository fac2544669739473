import assert from 'node:assert/strict';
import mongoose, { mongo } from 'mongoose';
import { resolveOptions } from '../../../src/config/options.js';
import { Scheduler } from '../../../src/index.js';

const uri = 'mongodb://root:hunter2@db:27017/app';
const nameless = 'mongodb://root:hunter2@db:27017';

function messageOf(options: unknown): string {
  try {
    resolveOptions(options);
  } catch (error) {
    const { message } = error as Error;
    assert.ok(!message.includes('hunter2'), 'credentials never appear in a message');
    return message;
  }
  return 'accepted';
}

/** Looks like the client of an earlier version of the driver. */
function clientOfVersion(version: string): object {
  const nothing = (): void => undefined;
  const options = { metadata: { driver: { name: 'nodejs', version } } };
  return { db: nothing, connect: nothing, close: nothing, options };
}

describe('options for the connection', () => {
  it('are a connection string, a client or a mongoose connection, and only one of them', () => {
    const client = new mongo.MongoClient(uri);
    const { connection } = mongoose;
    for (const options of [{ uri }, { client }, { connection }]) assert.equal(messageOf(options), 'accepted');
    assert.match(
      messageOf({}),
      /^options\.uri is missing: .*, or set options\.client or options\.connection$/,
    );
    assert.match(messageOf({ uri, client }), /^options\.uri and options\.client are set: set only one/);
    assert.match(messageOf({ client, connection }), /^options\.client and options\.connection are set/);
    assert.equal(resolveOptions({ client, database: 'app' }).client, client);
  });

  it('need the name of the database, in the connection string or separately', () => {
    assert.match(messageOf({ uri: nameless }), /^options\.uri must contain the database's name/);
    assert.match(
      messageOf({ uri: `${nameless}/?tls=true` }),
      /^options\.uri must contain the database's name/,
    );
    assert.equal(messageOf({ uri: nameless, database: 'app' }), 'accepted');
    assert.equal(resolveOptions({ uri, database: 'other' }).database, 'other');
    assert.match(messageOf({ uri: 'db:27017/app' }), /^options\.uri must be a connection string/);
    for (const database of ['', 'a.b', 'a b', 'a/b', '$a', 'admin', 'config', 'local', 'x'.repeat(64), 5])
      assert.match(messageOf({ uri, database }), /^options\.database must be the name of a database/);
  });

  it('accept prefixes that are valid in the names of collections', () => {
    for (const prefix of ['', 'a', 'chronos_', 'shop-1.', '2_', 'x'.repeat(50)])
      assert.equal(resolveOptions({ uri, prefix }).prefix, prefix);
    for (const prefix of [
      '.a',
      '-a',
      'a..b',
      'a b',
      '$a',
      'a$',
      'ä',
      'system.',
      'system.x',
      'x'.repeat(51),
      null,
      5,
    ])
      assert.match(messageOf({ uri, prefix }), /^options\.prefix must be empty, or up to 50 letters/);
  });

  it('reject the clients of other versions of the driver, with the version, and the way out', () => {
    const expected =
      /^options\.client must come from version 7 of the package mongodb, got version 6\.20\.0: install version 7, or set uri, which works with every version$/;
    assert.match(messageOf({ client: clientOfVersion('6.20.0|8.9.0') }), expected);
    assert.match(messageOf({ client: clientOfVersion('8.0.0') }), /got version 8\.0\.0/);
    assert.match(
      messageOf({ client: { ...clientOfVersion('7.0.0'), options: {} } }),
      /got an unknown version/,
    );
    assert.equal(messageOf({ client: clientOfVersion('7.2.0') }), 'accepted');
    assert.throws(() => new Scheduler({ client: clientOfVersion('6.20.0') as never }), {
      code: 'INVALID_OPTIONS',
    });
  });

  it('reject the connections of other versions of mongoose', () => {
    const { connection } = mongoose;
    const of = (version: unknown): object =>
      Object.create(connection, { base: { value: { version } } }) as object;
    assert.match(
      messageOf({ connection: of('8.19.1') }),
      /version 9 of the package mongoose, got version 8\.19\.1/,
    );
    assert.match(messageOf({ connection: of('10.0.0') }), /got version 10\.0\.0/);
    assert.equal(messageOf({ connection: of('9.0.0') }), 'accepted');
  });

  it('say what was meant if the wrong object is passed', () => {
    const client = new mongo.MongoClient(uri);
    const { connection } = mongoose;
    assert.match(messageOf({ client: connection }), /is a connection of mongoose: pass it as connection$/);
    assert.match(messageOf({ connection: client }), /is a MongoClient: pass it as client$/);
    assert.match(
      messageOf({ connection: mongoose }),
      /is mongoose itself: set connection to mongoose\.connection$/,
    );
    assert.match(
      messageOf({ client: uri }),
      /^options\.client must be a MongoClient of the package mongodb, got/,
    );
    assert.match(messageOf({ client: client.db() }), /must be a MongoClient/);
    assert.match(messageOf({ connection: {} }), /must be a connection of mongoose, got an object/);
  });
});
