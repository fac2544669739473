import { isDeepStrictEqual } from 'node:util';
import type { mongo } from 'mongoose';
import {
  findVersionError,
  type MongooseConnectionLike,
  namesDatabase,
  readDriverMetadata,
  versionIn,
} from '../config/connection-options.js';
import type { ResolvedOptions } from '../config/options.js';
import { ChronosError, toError } from '../domain/errors.js';
import { unlessAborted } from '../runtime/waiting.js';
import { MAX_AWAIT_MS } from './change-stream.js';
import { CLOSED_ERRORS, toConnectionError } from './mongo-errors.js';

// A client that the application opened, closes, and uses for its own work. What its options change about an operation is
// set for each operation (see openCollections); this file deals with the rest.

/** A client of the application, or the mongoose connection that it belongs to. */
export type ApplicationClient = Pick<ResolvedOptions, 'client' | 'connection' | 'database'>;

const CONNECTING = 2;

/** Waits until the client is connected, or connects it. Throws a ChronosError if waiting longer would not help. */
export async function openApplicationClient(
  { client, connection }: Partial<ApplicationClient>,
  signal: AbortSignal,
): Promise<mongo.MongoClient> {
  const opened = (client ?? connection?.getClient()) as mongo.MongoClient | null | undefined;
  // mongoose creates the client when it starts to connect.
  if (opened == null) {
    const message = 'options.connection was never opened: open it before Chronos uses it';
    throw new ChronosError('WRONG_STATE', message);
  }
  await unlessAborted(signal, assertSupported(opened));
  if (connection?.readyState === CONNECTING) await waitForFirstConnect(connection, signal);
  try {
    // The driver connects a client that is not connected yet, and rejects one that was closed.
    await unlessAborted(signal, opened.db('admin').command({ hello: 1 }, { signal }));
  } catch (error) {
    if (!CLOSED_ERRORS.has((error as Error).name)) throw error;
    const message =
      'the client in options.client or options.connection was closed: pass one that is open, and close it after stop()';
    throw new ChronosError('WRONG_STATE', message, { cause: error });
  }
  return opened;
}

/** mongoose does not retry the first connect, so its error is final. */
async function waitForFirstConnect(connection: MongooseConnectionLike, signal: AbortSignal): Promise<void> {
  try {
    await unlessAborted(signal, connection.asPromise());
  } catch (error) {
    throw signal.aborted ? error : toConnectionError(toError(error), 1);
  }
}

async function assertSupported(client: mongo.MongoClient): Promise<void> {
  const error = findVersionError('mongodb', versionIn(await readDriverMetadata(client)));
  if (error !== undefined) throw new ChronosError('INVALID_OPTIONS', `the client ${error}`);
  if (client.options.serverApi?.strict === true) {
    const message =
      'the client has serverApi.strict, and Chronos needs commands that the Stable API does not contain: pass a client without it, or set uri';
    throw new ChronosError('INVALID_OPTIONS', message);
  }
}

/** The option `database`, or the database that the application uses by default. */
export function defaultDatabase(client: mongo.MongoClient, source: Partial<ApplicationClient>): string {
  if (source.database !== undefined) return source.database;
  const name = source.connection?.name ?? client.options.dbName;
  // The driver's default if nobody chose a database.
  if (name !== 'test' || namesDatabase(urlOf(client) ?? '')) return name;
  const message =
    "options.database is missing: the connection string of the client names no database, and Chronos does not use the driver's default, test";
  throw new ChronosError('INVALID_OPTIONS', message);
}

function urlOf(client: mongo.MongoClient): string | undefined {
  const { url } = (client as unknown as { s: { url?: unknown } }).s;
  return typeof url === 'string' ? url : undefined;
}

/** How the renewal thread can connect in the same way as the client; or why it cannot. */
export type ThreadAccess = { uri: string; driverOptions: mongo.MongoClientOptions } | { reason: string };

/** Options that a thread needs to connect in the same way. Their parsed form is also accepted by the driver. */
const CONNECTION_OPTIONS = new Set([
  ...['replicaSet', 'directConnection', 'compressors', 'zlibCompressionLevel', 'serverApi'],
  ...['serverMonitoringMode', 'srvMaxHosts', 'srvServiceName', 'srvAllowedHostsSuffix'],
  ...['proxyHost', 'proxyPort', 'proxyUsername', 'proxyPassword'],
  ...['tls', 'tlsInsecure', 'tlsCAFile', 'tlsCRLFile', 'tlsCertificateKeyFile', 'rejectUnauthorized'],
  ...['ca', 'cert', 'crl', 'key', 'passphrase', 'pfx', 'ciphers', 'ecdhCurve', 'secureProtocol'],
  ...['minDHSize', 'allowPartialTrustChain', 'servername', 'ALPNProtocols'],
  ...['family', 'hints', 'localAddress', 'autoSelectFamily', 'autoSelectFamilyAttemptTimeout'],
  ...['noDelay', 'keepAliveInitialDelay'],
]);

/** Options that Chronos sets itself, and options without influence on how to connect. */
const UNNEEDED_OPTIONS = new Set([
  ...['hosts', 'srvHost', 'loadBalanced', 'dbName', 'userSpecifiedAuthSource', 'userSpecifiedReplicaSet'],
  ...['appName', 'driverInfo', 'metadata', 'runtime', 'runtimeAdapters', '__skipPingOnConnect'],
  ...['mongoLoggerOptions', 'mongodbLogPath', 'mongodbLogComponentSeverities', 'mongodbLogMaxDocumentLength'],
  ...['monitorCommands', 'encrypter', 'autoEncrypter', 'pkFactory', 'forceServerObjectId'],
  ...['writeConcern', 'readConcern', 'readPreference', 'localThresholdMS', 'retryReads', 'retryWrites'],
  ...['maxAdaptiveRetries', 'enableOverloadRetargeting', 'minInternalBufferSize'],
  ...['maxPoolSize', 'minPoolSize', 'maxConnecting', 'maxIdleTimeMS', 'waitQueueTimeoutMS'],
  ...['connectTimeoutMS', 'socketTimeoutMS', 'serverSelectionTimeoutMS', 'timeoutMS'],
  ...['heartbeatFrequencyMS', 'minHeartbeatFrequencyMS'],
  ...['raw', 'useBigInt64', 'promoteLongs', 'promoteValues', 'promoteBuffers', 'bsonRegExp', 'fieldsAsRaw'],
  ...['enableUtf8Validation', 'ignoreUndefined', 'serializeFunctions', 'checkKeys'],
]);

/**
 * The connection string of the client, and the options that differ from what this string alone results in. A client does
 * not keep the options that it was constructed with, only the parsed ones. An option that is not known here, or that
 * cannot be copied, such as a function, means that a thread might connect to something else, or not at all.
 */
export function threadAccess(client: mongo.MongoClient): ThreadAccess {
  const uri = urlOf(client);
  if (uri === undefined) return { reason: 'the connection string of the client is unknown' };
  const parsed = client.options as unknown as Record<string, unknown>;
  let byUri: Record<string, unknown>;
  try {
    // The client's own class: another version of the driver may have other defaults.
    const Client = client.constructor as new (uri: string) => mongo.MongoClient;
    byUri = new Client(uri).options;
  } catch {
    return { reason: 'the connection string of the client does not work without its options' };
  }
  const driverOptions: Record<string, unknown> = {};
  const blocking: string[] = [];
  for (const [name, value] of Object.entries(parsed)) {
    if (UNNEEDED_OPTIONS.has(name) || value === undefined || isSame(value, byUri[name])) continue;
    // Set by the driver, together with tlsInsecure.
    if (name === 'checkServerIdentity' && parsed['tlsInsecure'] === true) continue;
    const copied = name === 'credentials' ? credentialOptions(value) : { [name]: value };
    const isKnown = name === 'credentials' || CONNECTION_OPTIONS.has(name);
    if (isKnown && isCloneable(copied)) Object.assign(driverOptions, copied);
    else blocking.push(name);
  }
  if (blocking.length === 0) return { uri, driverOptions };
  return { reason: `options of the client cannot be copied to a thread: ${blocking.join(', ')}` };
}

/** The functions that both clients have were made by the driver from the same connection string. */
function isSame(value: unknown, other: unknown): boolean {
  return typeof value === 'function' ? typeof other === 'function' : isDeepStrictEqual(value, other);
}

/** The options that the driver parsed these credentials from. */
function credentialOptions(credentials: unknown): mongo.MongoClientOptions {
  const { username, password, source, mechanism, mechanismProperties } =
    credentials as mongo.MongoCredentials;
  return {
    ...(username !== '' && { auth: { username, password } }),
    authSource: source,
    ...(mechanism !== 'DEFAULT' && { authMechanism: mechanism }),
    ...(Object.keys(mechanismProperties).length > 0 && {
      authMechanismProperties: { ...mechanismProperties },
    }),
  };
}

function isCloneable(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}

/** What the options of the client cost that cannot be overridden for each operation. */
export function clientWarnings({ options }: mongo.MongoClient, connections: number): string[] {
  const { retryWrites, retryReads, maxPoolSize, socketTimeoutMS } = options;
  const { timeoutMS } = options as { timeoutMS?: number };
  return [
    ...(retryWrites && retryReads
      ? []
      : ['its client has retryWrites or retryReads turned off: operations fail when the primary changes']),
    ...(maxPoolSize === 0 || maxPoolSize >= connections
      ? []
      : [
          `its client has a maxPoolSize of ${maxPoolSize}, less than the ${connections} that Chronos may use`,
        ]),
    ...(socketTimeoutMS === 0 || socketTimeoutMS > MAX_AWAIT_MS
      ? []
      : [`its client has a socketTimeoutMS of ${socketTimeoutMS}, too short for the change stream`]),
    ...(timeoutMS === undefined
      ? []
      : [`its client has a timeoutMS of ${timeoutMS}, which ends operations of Chronos, too`]),
  ];
}
