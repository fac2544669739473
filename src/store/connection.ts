import { mongo } from 'mongoose';
import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError, toError } from '../domain/errors.js';
import { retryDelay } from '../runtime/retry.js';
import { systemClock } from '../runtime/system-clock.js';
import { sharedDeadlines, unlessAborted, waitAtMost } from '../runtime/waiting.js';
import {
  type ApplicationClient,
  clientWarnings,
  defaultDatabase,
  openApplicationClient,
  threadAccess,
} from './application-client.js';
import { describeFailure, isTransient, OperationTimeoutError, toConnectionError } from './mongo-errors.js';
import { type Collections, openCollections, openDb } from './schema/collections.js';

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
} as const satisfies mongo.MongoClientOptions;

/** The driver's names for servers that accept writes. */
const WRITABLE = new Set<string>(['RSPrimary', 'Standalone', 'Mongos', 'LoadBalancer']);

/** How long closing our own client may take. */
const MAX_CLOSE_MS = 2000;

/** The limit for opening a client, in addition to the driver's timeouts: it can wait forever in spite of them. */
const MAX_OPEN_MS = 15_000;

export const CONNECT_BACKOFF = { first: 250, max: 5000 } as const;

/** Which database to use, and how to reach it: a connection string, or the application's client or connection. */
export interface DatabaseSource
  extends Partial<ApplicationClient>, Pick<ResolvedOptions, 'prefix'>, Partial<Pick<ResolvedOptions, 'uri'>> {
  /** In addition to the connection string. */
  driverOptions?: mongo.MongoClientOptions;
}

export interface Database {
  readonly collections: Collections;
  /** Collections for the renewal of locks in this process, with a shorter time limit. */
  readonly renewalCollections: (lockTimeout: number) => Collections;
  /** How the renewal thread connects, as plain data; or why it cannot. */
  readonly threadSource: DatabaseSource | { reason: string };
  /** What is worse than usual because of the client that the application passed. */
  readonly warnings: readonly string[];
  readonly readServerTime: () => Promise<Date>;
  /** Called after every change of the primary: the clock of the new one may differ. */
  onPrimaryChange(callback: () => void): void;
  readonly poolStats: () => PoolUse;
  /** True if the driver sees a server that accepts writes. */
  readonly isConnected: () => boolean;
  /** Closes the connections, unless they belong to the application. */
  close(): Promise<void>;
}

interface ConnectRequest {
  source: DatabaseSource;
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
  const { clock, timeout, signal } = request;
  const end = clock.monotonic() + timeout;
  const isStopped = (): boolean => signal?.aborted === true;
  for (let failures = 1; ; failures++) {
    try {
      const opened = await open(request, Math.max(250, end - clock.monotonic()));
      if (!isStopped()) return openDatabase(request, opened);
      await opened.close();
      throw new Error('stopped while connecting');
    } catch (thrown) {
      if (thrown instanceof ChronosError) throw thrown;
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

/** A connected client and the name of the database. */
export interface OpenClient {
  client: mongo.MongoClient;
  database: string;
  /** Leaves the application's client open. */
  close: () => Promise<void>;
}

async function open(request: ConnectRequest, timeLeft: number): Promise<OpenClient> {
  const { source, poolSize, socketTimeout, signal } = request;
  const timeout = Math.min(TIMEOUTS.serverSelectionTimeoutMS, timeLeft);
  if (source.uri === undefined) return openGivenClient(source, timeout, signal);
  const options = {
    ...source.driverOptions,
    ...TIMEOUTS,
    serverSelectionTimeoutMS: timeout,
    socketTimeoutMS: socketTimeout ?? TIMEOUTS.socketTimeoutMS,
    maxPoolSize: poolSize,
  };
  return openOwnClient(source.uri, source.database, options, signal);
}

/** Opens a client that the caller closes. */
export async function openOwnClient(
  uri: string,
  database: string | undefined,
  options: mongo.MongoClientOptions,
  signal?: AbortSignal,
): Promise<OpenClient> {
  const client = new mongo.MongoClient(uri, {
    ...options,
    appName: 'chronos',
    retryWrites: true,
    // Collections have their own read preference; this is the server that connect() waits for.
    readPreference: 'primary',
  });
  try {
    await unlessAborted(openLimit(MAX_OPEN_MS, signal), client.connect());
  } catch (error) {
    const closed = closeClient(client).catch(() => undefined);
    // After stop(), nobody waits for it.
    if (signal?.aborted !== true) await closed;
    throw error;
  }
  return { client, database: database ?? client.options.dbName, close: () => closeClient(client) };
}

function openLimit(timeout: number, signal: AbortSignal | undefined): AbortSignal {
  const late = new OperationTimeoutError(`there was no connection after ${timeout} ms`);
  const limit = sharedDeadlines(timeout, late)();
  return signal === undefined ? limit : AbortSignal.any([limit, signal]);
}

/** The driver's own parts of a client that are not in its types. */
interface ClientInternals {
  topology?: { closeCheckedOutConnections(): void; close(): void };
}

/**
 * The driver first ends its sessions on the server, and waits for the reply without a limit. A server that is frozen never
 * replies, so after a while the connections are closed without it: otherwise they would stay open, and keep the process alive.
 */
async function closeClient(client: mongo.MongoClient): Promise<void> {
  let isClosed = false;
  const closed = client.close().finally(() => (isClosed = true));
  await waitAtMost(systemClock, MAX_CLOSE_MS, closed);
  if (isClosed) return;
  const { topology } = client as unknown as ClientInternals;
  topology?.closeCheckedOutConnections();
  topology?.close();
}

/** Waits at most `timeout` milliseconds for the application's client. */
export async function openGivenClient(
  source: DatabaseSource,
  timeout: number,
  signal?: AbortSignal,
): Promise<OpenClient> {
  const client = await openApplicationClient(source, openLimit(timeout, signal));
  return { client, database: defaultDatabase(client, source), close: () => Promise.resolve() };
}

function openDatabase({ source, poolSize, socketTimeout }: ConnectRequest, opened: OpenClient): Database {
  const { client, database } = opened;
  const { prefix } = source;
  const isOwn = source.uri !== undefined;
  /** In addition to the timeouts of the client: the driver can wait forever in spite of them. */
  const handle = (timeout: number) => ({ client, prefix, signal: operationDeadlines(timeout) });
  const limited = handle(socketTimeout ?? TIMEOUTS.socketTimeoutMS);
  const admin = openDb({ ...limited, database: 'admin' });
  const events = new ClientEvents(client);
  let isConnected = true;
  events.on('topologyDescriptionChanged', ({ newDescription }) => {
    isConnected = [...newDescription.servers.values()].some(({ type }) => WRITABLE.has(type));
  });
  return {
    collections: openCollections({ ...limited, database }),
    renewalCollections: (lockTimeout) =>
      openCollections({ ...handle(renewalTimeout(lockTimeout)), database }),
    threadSource: toThreadSource(source, opened),
    warnings: isOwn ? [] : clientWarnings(client, poolSize),
    async readServerTime() {
      const hello = await admin.command({ hello: 1 });
      return hello['localTime'] as Date;
    },
    onPrimaryChange(callback) {
      let primary: string | undefined;
      events.on('topologyDescriptionChanged', ({ newDescription }) => {
        const found = [...newDescription.servers.values()].find(({ type }) => type === 'RSPrimary');
        if (found === undefined || found.address === primary) return;
        if (primary !== undefined) callback();
        primary = found.address;
      });
    },
    poolStats: trackPool(client, events),
    isConnected: () => isConnected,
    close: () => {
      events.removeAll();
      return opened.close();
    },
  };
}

/** The time limit of each operation. Past it, the result of the operation is unknown. */
export function operationDeadlines(timeout: number): () => AbortSignal {
  return sharedDeadlines(timeout, new OperationTimeoutError(`MongoDB did not reply within ${timeout} ms`));
}

/** How long one renewal may take: several of them must fit into the time that a lock is valid. */
export function renewalTimeout(lockTimeout: number): number {
  return Math.min(5000, Math.max(1000, lockTimeout / 6));
}

function toThreadSource(source: DatabaseSource, { client, database }: OpenClient): Database['threadSource'] {
  const { uri, prefix, driverOptions = {} } = source;
  const access = uri === undefined ? threadAccess(client) : { uri, driverOptions };
  if ('reason' in access) return access;
  return { ...access, database, prefix };
}

/** Listeners on a client that may outlive them. */
class ClientEvents {
  readonly #client: mongo.MongoClient;
  readonly #added: (() => unknown)[] = [];

  constructor(client: mongo.MongoClient) {
    this.#client = client;
  }

  on<E extends keyof mongo.MongoClientEvents>(event: E, listener: mongo.MongoClientEvents[E]): void {
    this.#client.on(event, listener);
    this.#added.push(() => this.#client.off(event, listener));
  }

  removeAll(): void {
    for (const remove of this.#added.splice(0)) remove();
  }
}

/** The connections of this process, without the renewal thread's. With the application's client, also its own. */
export interface PoolUse {
  open: number;
  inUse: number;
  /** Operations that wait for a connection. */
  waiting: number;
  /** The limit per server. */
  max: number;
}

/** Counts the driver's pool events, for all servers together. */
function trackPool(client: mongo.MongoClient, events: ClientEvents): () => PoolUse {
  const open = new Set<string>();
  const inUse = new Set<string>();
  let waiting = 0;
  const key = ({ address, connectionId }: { address: string; connectionId: unknown }): string =>
    `${address}/${String(connectionId)}`;
  events.on('connectionCreated', (event) => void open.add(key(event)));
  events.on('connectionClosed', (event) => {
    open.delete(key(event));
    inUse.delete(key(event));
  });
  events.on('connectionCheckOutStarted', () => waiting++);
  events.on('connectionCheckOutFailed', () => waiting--);
  events.on('connectionCheckedOut', (event) => {
    waiting--;
    // Also adds connections that were created before these listeners.
    open.add(key(event));
    inUse.add(key(event));
  });
  events.on('connectionCheckedIn', (event) => void inUse.delete(key(event)));
  return () => ({
    open: open.size,
    inUse: inUse.size,
    waiting: Math.max(0, waiting),
    max: client.options.maxPoolSize,
  });
}
