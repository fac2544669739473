import { randomUUID } from 'node:crypto';
import mongoose, { type Connection } from 'mongoose';
import { type AnyPayloads, attachLogger, Scheduler, type SchedulerOptions } from '../../src/index.js';
import { type Collections, openCollections } from '../../src/store/schema/collections.js';
import { install } from '../../src/store/schema/install.js';

/** Short enough that a test need not wait, long enough that a busy machine does not trip over it. */
export const SHORT_INTERVALS = {
  pollInterval: '100ms',
  sweepInterval: '200ms',
  heartbeatInterval: '500ms',
  // So long that the renewal thread connects only if a test gives it a reason: that takes longer than most tests.
  lockTimeout: '20s',
} as const;

let prepared: Promise<string> | undefined;
let dropped: Promise<unknown> = Promise.resolve();

async function prepare(): Promise<string> {
  const base = new URL(process.env['CHRONOS_TEST_URI'] ?? 'mongodb://CHRONOS_TEST_URI-is-not-set');
  base.pathname = `/chronos-test-${randomUUID().slice(0, 13)}`;
  await install(base.href);
  return base.href;
}

/** A database with everything installed: made while the test before ran, for making one takes as long as a test. */
async function takePrepared(): Promise<string> {
  const uri = await (prepared ?? prepare());
  prepared = prepare();
  prepared.catch(() => undefined);
  return uri;
}

/** Drops the database while the next test goes on: the server takes a tenth of a second for it. */
function dropLater(connection: Connection): void {
  const drop = connection.dropDatabase().finally(() => connection.destroy());
  dropped = Promise.all([dropped, drop]);
  dropped.catch(() => undefined);
}

/** After the last test: waits for what still goes on, and leaves no database behind. */
export async function dropDatabases(): Promise<void> {
  if (prepared !== undefined) dropLater(await mongoose.createConnection(await prepared).asPromise());
  await dropped;
}

/** A database of its own for each test, with everything that a test opens in it closed afterwards. */
export class TestDatabase {
  #connection: Connection | undefined;
  #uri = '';
  #schedulers: Scheduler<object>[] = [];

  get uri(): string {
    return this.#uri;
  }

  get connection(): Connection {
    if (this.#connection === undefined) throw new Error('the database is open only while a test runs');
    return this.#connection;
  }

  get collections(): Collections {
    return openCollections(this.connection);
  }

  /** A scheduler on this database, not started; stopped when the test ends. CHRONOS_TEST_LOG=1 shows what it does. */
  scheduler<P extends object = AnyPayloads>(options: Partial<SchedulerOptions> = {}): Scheduler<P> {
    const scheduler = new Scheduler<P>({ uri: this.uri, ...SHORT_INTERVALS, ...options });
    if (process.env['CHRONOS_TEST_LOG']) {
      const line = (fields: object, message: string): void =>
        console.log(scheduler.workerId, message, fields);
      attachLogger(scheduler, { debug: line, info: line, warn: line, error: line });
    }
    this.#schedulers.push(scheduler);
    return scheduler;
  }

  /** Restricted rights for the server, e.g. `failCommand`, to lose replies on purpose. */
  admin(command: Record<string, unknown>): Promise<unknown> {
    return this.connection.getClient().db('admin').command(command);
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
