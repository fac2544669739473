import mongoose, { type Connection, type ConnectOptions } from 'mongoose';
import type { Clock } from '../domain/clock.js';
import { toError } from '../domain/errors.js';
import { defineModels, openCollections, type Collections } from './models.js';
import { watchPool, type PoolUse } from './pool-use.js';
import { isPassing, reasonOf, unreachable } from './unreachable.js';

/**
 * Set explicitly: the driver's defaults wait for minutes on a frozen primary (no socket time-out, no limit on the
 * wait for a connection). Locks must outlive these, so that a worker notices trouble before others take its jobs.
 */
const TIMEOUTS = {
  serverSelectionTimeoutMS: 5000,
  connectTimeoutMS: 5000,
  socketTimeoutMS: 10_000,
  waitQueueTimeoutMS: 10_000,
  heartbeatFrequencyMS: 2000,
} as const satisfies ConnectOptions;

/** Servers that take writes, as the driver calls them. */
const WRITABLE = new Set<string>(['RSPrimary', 'Standalone', 'Mongos', 'LoadBalancer']);

const FIRST_RETRY = 250;
const LONGEST_RETRY = 5000;

export interface Database {
  readonly collections: Collections;
  readonly readServerTime: () => Promise<Date>;
  /** Calls back after every change of the primary: the new one has a clock of its own. */
  onPrimaryChange(callback: () => void): void;
  readonly poolUse: () => PoolUse;
  /** Whether the driver knows a server to write to. */
  readonly isConnected: () => boolean;
  close(): Promise<void>;
}

export interface ConnectRequest {
  uri: string;
  poolSize: number;
  /** How long to wait for a reply, in milliseconds. Default 10 s. */
  socketTimeout?: number;
  /** Give up after this many milliseconds. */
  timeout: number;
  clock: Clock;
  onRetry?: (error: Error, failures: number, retryIn: number) => void;
  signal?: AbortSignal;
}

/** Connects, trying again with backoff until the time is up. */
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
      const retryIn = Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** (failures - 1));
      if (!isPassing(error) || clock.monotonic() + retryIn >= end || isStopped()) {
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
    // Whatever the connection string says: read-backs from a secondary that lags would take our own locks for lost.
    writeConcern: { w: 'majority', journal: true },
    readPreference: 'primary',
    readConcernLevel: 'local',
    retryWrites: true,
  });
  // asPromise() reports the first failure; without a listener later ones would be uncaught.
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
    poolUse: watchPool(client),
    isConnected: () => isConnected,
    close: () => connection.destroy(),
  };
}
