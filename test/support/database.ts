import { randomUUID } from 'node:crypto';
import mongoose, { type Connection, type mongo } from 'mongoose';
import {
  type AnyPayloads,
  type AnyScheduler,
  type Logger,
  Scheduler,
  type SchedulerOptions,
} from '../../src/index.js';
import { DEFAULT_PREFIX } from '../../src/config/connection-options.js';
import {
  type CollectionName,
  type Collections,
  openCollections,
} from '../../src/store/schema/collections.js';
import { install } from '../../src/store/schema/install.js';
import { type ReadableCollections, readableCollections } from './readable-collections.js';

/** The collections with the default prefix in the database of a connection. */
export function collectionsOf(connection: Connection, prefix = DEFAULT_PREFIX): Collections {
  return openCollections({ client: connection.getClient(), database: connection.name, prefix });
}

/** The name of a collection with the default prefix, for commands and fail points. */
export function collectionName(name: CollectionName): string {
  return `${DEFAULT_PREFIX}${name}`;
}

/** Short enough that tests are quick, long enough for a busy machine. */
export const SHORT_INTERVALS = {
  pollInterval: '100ms',
  sweepInterval: '200ms',
  heartbeatInterval: '500ms',
  // Long enough that most tests end before the first renewal, for which the renewal thread would have to connect.
  lockTimeout: '20s',
} as const;

/** Tests cause failures on purpose, so they log nothing, unless CHRONOS_TEST_LOG is set. */
function testLogger(): Logger | false {
  if (!process.env['CHRONOS_TEST_LOG']) return false;
  const write = (fields: object, message: string): void => console.log(message, fields);
  return { debug: write, info: write, warn: write, error: write };
}

let prepared: Promise<string> | undefined;
let dropped: Promise<unknown> = Promise.resolve();

async function prepare(): Promise<string> {
  const base = new URL(process.env['CHRONOS_TEST_URI'] ?? 'mongodb://CHRONOS_TEST_URI-is-not-set');
  base.pathname = `/chronos-test-${randomUUID().slice(0, 13)}`;
  await install({ uri: base.href, prefix: DEFAULT_PREFIX });
  return base.href;
}

/** A database with everything installed. It was created during the previous test, because that takes as long as a test. */
async function takePrepared(): Promise<string> {
  // The previous test may have broken the connections of this process.
  const uri = await (prepared ?? prepare()).catch(prepare);
  prepared = prepare();
  prepared.catch(() => undefined);
  return uri;
}

/** Drops the database during the next test, because that takes a tenth of a second. */
function dropLater(connection: Connection): void {
  const drop = connection.dropDatabase().finally(() => connection.destroy());
  dropped = Promise.all([dropped, drop]);
  dropped.catch(() => undefined);
}

/** After the last test: waits until all databases are dropped. */
export async function dropDatabases(): Promise<void> {
  if (prepared !== undefined) dropLater(await mongoose.createConnection(await prepared).asPromise());
  await dropped;
}

/** A new database for each test. Closing it stops the schedulers that the test created. */
export class TestDatabase {
  #connection: Connection | undefined;
  #uri = '';
  #schedulers: AnyScheduler[] = [];

  get uri(): string {
    return this.#uri;
  }

  get connection(): Connection {
    if (this.#connection === undefined) throw new Error('the database is open only while a test runs');
    return this.#connection;
  }

  /** The collections as they are stored, for operations of the store. */
  get stored(): Collections {
    return collectionsOf(this.connection);
  }

  /** The collections, with jobs as they look outside the store. */
  get collections(): ReadableCollections {
    return readableCollections(this.stored);
  }

  /** A scheduler on this database, not started; stopped when the test ends. CHRONOS_TEST_LOG=1 logs its events. */
  scheduler<P extends object = AnyPayloads>(options: Partial<SchedulerOptions> = {}): Scheduler<P> {
    const isGiven = options.client !== undefined || options.connection !== undefined;
    const own = isGiven ? {} : { uri: this.uri };
    const given = { ...own, ...SHORT_INTERVALS, logger: testLogger(), ...options };
    const scheduler = new Scheduler<P>(given as SchedulerOptions);
    this.#schedulers.push(scheduler);
    return scheduler;
  }

  /** Runs a command on the admin database, for example to configure a fail point. */
  admin(command: Record<string, unknown>): Promise<mongo.Document> {
    return this.connection.getClient().db('admin').command(command);
  }

  /** Moves the calendar of all schedules back by this time, so that they are due. */
  async makeSchedulesDue(ms: number): Promise<void> {
    const earlier = {
      nextRunAt: { $subtract: ['$nextRunAt', ms] },
      anchor: { $subtract: ['$anchor', ms] },
    };
    await this.collections.schedules.updateMany({}, [{ $set: earlier }]);
  }

  async open(): Promise<void> {
    this.#uri = await takePrepared();
    this.#connection = await mongoose.createConnection(this.#uri).asPromise();
  }

  async close(): Promise<void> {
    await Promise.all(this.#schedulers.splice(0).map((scheduler) => scheduler.stop('3s')));
    if (this.#connection !== undefined) dropLater(this.#connection);
    this.#connection = undefined;
  }
}

/** Call inside a `describe`: a fresh database for each of its tests. */
export function useDatabase(): TestDatabase {
  const database = new TestDatabase();
  beforeEach(() => database.open());
  afterEach(() => database.close());
  return database;
}
