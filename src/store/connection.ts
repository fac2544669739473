import mongoose, { type Connection, type ConnectOptions, type mongo } from 'mongoose';
import type { Clock } from '../domain/clock.js';
import { toError } from '../domain/errors.js';
import { isTransient, reasonOf, unreachable } from './mongo-errors.js';
import { type Collections, defineModels, openCollections } from './schema/collections.js';

/**
 * Set explicitly, because the driver's defaults wait for minutes on a frozen primary: it has no socket timeout and no
 * limit for waiting for a connection. Locks must outlive these, so that a worker notices an outage before it loses jobs.
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

const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 5000;

export interface Database {
  readonly collections: Collections;
  readonly readServerTime: () => Promise<Date>;
  /** Calls back after every change of the primary, whose clock may differ. */
  onPrimaryChange(callback: () => void): void;
  readonly poolStats: () => PoolUse;
  /** True if the driver knows a server that accepts writes. */
  readonly isConnected: () => boolean;
  close(): Promise<void>;
}

export interface ConnectRequest {
  uri: string;
  poolSize: number;
  /** Milliseconds to wait for a reply. Default 10 s. */
  socketTimeout?: number;
  /** Milliseconds until connecting is given up. */
  timeout: number;
  clock: Clock;
  onRetry?: (error: Error, failures: number, retryIn: number) => void;
  signal?: AbortSignal;
}

/** Connects, and retries with backoff until the timeout. */
export async function connect(request: ConnectRequest): Promise<Database> {
  const { clock, timeout, signal } = request;
  const end = clock.monotonic() + timeout;
  const isStopped = (): boolean => signal?.aborted === true;
  for (let failures = 1; ; failures++) {
    try {
      const socketTimeoutMS = request.socketTimeout ?? TIMEOUTS.socketTimeoutMS;
      const left = Math.max(250, end - clock.monotonic());
      const serverSelectionTimeoutMS = Math.min(TIMEOUTS.serverSelectionTimeoutMS, left);
      const options = {
        ...TIMEOUTS,
        serverSelectionTimeoutMS,
        socketTimeoutMS,
        maxPoolSize: request.poolSize,
      };
      const connection = await openConnection(request.uri, options);
      if (!isStopped()) return openDatabase(connection);
      await connection.destroy();
      throw new Error('stopped while connecting');
    } catch (thrown) {
      const error = toError(thrown);
      const retryIn = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
      if (!isTransient(error) || clock.monotonic() + retryIn >= end || isStopped()) {
        throw unreachable(error, failures);
      }
      request.onRetry?.(new Error(reasonOf(error), { cause: error }), failures, retryIn);
      await clock.sleep(retryIn, signal);
      if (isStopped()) throw unreachable(error, failures);
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
    // Override the connection string: reading back from a lagging secondary would make our own locks look lost.
    writeConcern: { w: 'majority', journal: true },
    readPreference: 'primary',
    readConcernLevel: 'local',
    retryWrites: true,
  });
  // asPromise() reports the first failure. Without a listener, later ones would be uncaught.
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
        const found = [...newDescription.servers.values()].find(
          (server) => server.type === 'RSPrimary',
        )?.address;
        if (found === undefined || found === primary) return;
        if (primary !== undefined) callback();
        primary = found;
      });
    },
    poolStats: trackPool(client),
    isConnected: () => isConnected,
    close: () => connection.destroy(),
  };
}

/** The connections of this process, without those of the renewal thread. */
export interface PoolUse {
  open: number;
  inUse: number;
  /** Operations that wait for a connection. */
  waiting: number;
  /** The limit per server. */
  max: number;
}

/** Counts the driver's pool events, for all servers together. */
export function trackPool(client: mongo.MongoClient): () => PoolUse {
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
