import mongoose, { type Connection, type ConnectOptions, type mongo } from 'mongoose';
import type { Clock } from '../domain/clock.js';
import { toError } from '../domain/errors.js';
import { retryDelay } from '../runtime/retry.js';
import { describeFailure, isTransient, toConnectionError } from './mongo-errors.js';
import { type Collections, defineModels, openCollections } from './schema/collections.js';

/**
 * The driver's defaults wait for minutes on a frozen primary: no socket timeout, and no limit on waiting for a connection.
 * Locks must outlive these timeouts, so that a worker notices an outage before it loses jobs.
 */
const TIMEOUTS = {
  serverSelectionTimeoutMS: 5000,
  connectTimeoutMS: 5000,
  socketTimeoutMS: 10_000,
  waitQueueTimeoutMS: 10_000,
  heartbeatFrequencyMS: 2000,
} as const satisfies ConnectOptions;

/** The driver's names for servers that accept writes. */
const WRITABLE = new Set<string>(['RSPrimary', 'Standalone', 'Mongos', 'LoadBalancer']);

const CONNECT_BACKOFF = { first: 250, max: 5000 } as const;

export interface Database {
  readonly collections: Collections;
  readonly readServerTime: () => Promise<Date>;
  /** Called after every change of the primary: the clock of the new one may differ. */
  onPrimaryChange(callback: () => void): void;
  readonly poolStats: () => PoolUse;
  /** True if the driver sees a server that accepts writes. */
  readonly isConnected: () => boolean;
  close(): Promise<void>;
}

interface ConnectRequest {
  uri: string;
  poolSize: number;
  /** Milliseconds to wait for a reply. Default 10 s. */
  socketTimeout?: number;
  /** Milliseconds to keep trying. */
  timeout: number;
  clock: Clock;
  onRetry?: (error: Error, failures: number, retryIn: number) => void;
  signal?: AbortSignal;
}

/** Connects, and retries with backoff until the timeout. */
export async function connect(request: ConnectRequest): Promise<Database> {
  const { uri, poolSize, socketTimeout, clock, timeout, signal } = request;
  const end = clock.monotonic() + timeout;
  const isStopped = (): boolean => signal?.aborted === true;
  for (let failures = 1; ; failures++) {
    try {
      const left = Math.max(250, end - clock.monotonic());
      const connection = await openConnection(uri, {
        ...TIMEOUTS,
        serverSelectionTimeoutMS: Math.min(TIMEOUTS.serverSelectionTimeoutMS, left),
        socketTimeoutMS: socketTimeout ?? TIMEOUTS.socketTimeoutMS,
        maxPoolSize: poolSize,
      });
      if (!isStopped()) return openDatabase(connection);
      await connection.destroy();
      throw new Error('stopped while connecting');
    } catch (thrown) {
      const error = toError(thrown);
      const retryIn = retryDelay(CONNECT_BACKOFF, failures);
      if (!isTransient(error) || clock.monotonic() + retryIn >= end || isStopped()) {
        throw toConnectionError(error, failures);
      }
      request.onRetry?.(new Error(describeFailure(error), { cause: error }), failures, retryIn);
      await clock.sleep(retryIn, signal);
      if (isStopped()) throw toConnectionError(error, failures);
    }
  }
}

export async function openConnection(uri: string, options: ConnectOptions): Promise<Connection> {
  const connection = mongoose.createConnection(uri, {
    ...options,
    appName: 'chronos',
    autoIndex: false,
    autoCreate: false,
    bufferCommands: false,
    ignoreUndefined: false,
    // These override the connection string: reads from a lagging secondary would make our own locks look lost.
    writeConcern: { w: 'majority', journal: true },
    readPreference: 'primary',
    readConcernLevel: 'local',
    retryWrites: true,
  });
  // asPromise() reports the first error. Without a listener, later errors would be uncaught.
  connection.on('error', () => undefined);
  try {
    await connection.asPromise();
  } catch (error) {
    await connection.destroy().catch(() => undefined);
    throw error;
  }
  defineModels(connection);
  return connection;
}

function openDatabase(connection: Connection): Database {
  const client = connection.getClient();
  const admin = client.db('admin');
  let isConnected = true;
  client.on('topologyDescriptionChanged', ({ newDescription }) => {
    isConnected = [...newDescription.servers.values()].some(({ type }) => WRITABLE.has(type));
  });
  return {
    collections: openCollections(connection),
    async readServerTime() {
      const hello = await admin.command({ hello: 1 });
      return hello['localTime'] as Date;
    },
    onPrimaryChange(callback) {
      let primary: string | undefined;
      client.on('topologyDescriptionChanged', ({ newDescription }) => {
        const found = [...newDescription.servers.values()].find(({ type }) => type === 'RSPrimary');
        if (found === undefined || found.address === primary) return;
        if (primary !== undefined) callback();
        primary = found.address;
      });
    },
    poolStats: trackPool(client),
    isConnected: () => isConnected,
    close: () => connection.destroy(),
  };
}

/** The connections of this process, without the renewal thread's. */
export interface PoolUse {
  open: number;
  inUse: number;
  /** Operations that wait for a connection. */
  waiting: number;
  /** The limit per server. */
  max: number;
}

/** Counts the driver's pool events, for all servers together. */
function trackPool(client: mongo.MongoClient): () => PoolUse {
  const open = new Set<string>();
  const inUse = new Set<string>();
  let waiting = 0;
  const key = ({ address, connectionId }: { address: string; connectionId: unknown }): string =>
    `${address}/${String(connectionId)}`;
  client.on('connectionCreated', (event) => void open.add(key(event)));
  client.on('connectionClosed', (event) => {
    open.delete(key(event));
    inUse.delete(key(event));
  });
  client.on('connectionCheckOutStarted', () => waiting++);
  client.on('connectionCheckOutFailed', () => waiting--);
  client.on('connectionCheckedOut', (event) => {
    waiting--;
    // Also adds connections that were created before these listeners.
    open.add(key(event));
    inUse.add(key(event));
  });
  client.on('connectionCheckedIn', (event) => void inUse.delete(key(event)));
  return () => ({
    open: open.size,
    inUse: inUse.size,
    waiting: Math.max(0, waiting),
    max: client.options.maxPoolSize,
  });
}
