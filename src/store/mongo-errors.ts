import type { mongo } from 'mongoose';
import { ChronosError, redactCredentials, toError } from '../domain/errors.js';

const DUPLICATE_KEY = 11_000;
const DOCUMENT_VALIDATION_FAILURE = 121;

/**
 * Like `instanceof`, but by name: the application's client may come from another copy of the driver. Each class of the
 * driver's errors has its own getter `name`.
 */
export function isDriverError(error: unknown, className: `Mongo${string}Error`): error is mongo.MongoError {
  if (!(error instanceof Error)) return false;
  let prototype = Object.getPrototypeOf(error) as object | null;
  while (prototype !== null && prototype !== Error.prototype) {
    const name = Object.getOwnPropertyDescriptor(prototype, 'name')?.get?.call(error) as unknown;
    if (name === className) return true;
    prototype = Object.getPrototypeOf(prototype) as object | null;
  }
  return false;
}

function isBulkWriteError(error: unknown): error is mongo.MongoBulkWriteError {
  return isDriverError(error, 'MongoBulkWriteError');
}

/** The abort reason of an operation that took too long. */
export class OperationTimeoutError extends Error {
  static {
    // Not enumerable: the driver copies enumerable properties to its MongoBulkWriteError, whose name cannot be set.
    Object.defineProperty(this.prototype, 'name', { value: 'OperationTimeoutError' });
  }
}

export function isDuplicateKey(error: unknown): boolean {
  return isDriverError(error, 'MongoServerError') && error.code === DUPLICATE_KEY;
}

/** The validator of the collection rejects the document as it would be after the write. */
export function isRejectedByValidator(error: unknown): boolean {
  return isDriverError(error, 'MongoServerError') && error.code === DOCUMENT_VALIDATION_FAILURE;
}

/**
 * `bulkWrite` and `insertMany` wrap an error of the whole command, such as a lost connection, in a MongoBulkWriteError,
 * as if single writes had been rejected. Returns the original error.
 */
function unwrap(error: unknown): unknown {
  if (!isBulkWriteError(error)) return error;
  const inner: unknown = error.errorResponse;
  return inner instanceof Error ? inner : error;
}

interface RejectedWrite {
  /** The position in the array that was passed to `bulkWrite` or `insertMany`. */
  index: number;
  isDuplicate: boolean;
  error: Error;
}

/** The writes that the server rejected; all others took effect. Rethrows errors that do not say so. */
export function rejectedWrites(thrown: unknown): RejectedWrite[] {
  if (!isBulkWriteError(thrown) || isResultUnknown(thrown)) throw thrown;
  const rejected = [thrown.writeErrors].flat();
  if (rejected.length === 0) throw thrown;
  return rejected.map(({ index, code, errmsg }) => ({
    index,
    isDuplicate: code === DUPLICATE_KEY,
    error: new Error(errmsg ?? 'rejected by the server'),
  }));
}

/**
 * Codes for a server that is no longer primary, shuts down, lost its connections, or has no snapshot yet right after an
 * election. The driver labels these as retryable only for writes that it can retry itself.
 */
const TRANSIENT_CODES = new Set([
  6, 7, 89, 91, 133, 134, 189, 262, 9001, 10_107, 11_600, 11_602, 13_435, 13_436,
]);

/** The application closed its client. The driver does not export all of these classes. */
export const CLOSED_ERRORS: ReadonlySet<string> = new Set([
  'MongoNotConnectedError',
  'MongoTopologyClosedError',
  'MongoServerClosedError',
  'MongoPoolClosedError',
  'MongoClientClosedError',
]);

const UNKNOWN_RESULTS = [
  'MongoNetworkError',
  'MongoServerSelectionError',
  'MongoWriteConcernError',
  // All connections were busy.
  'MongoWaitQueueTimeoutError',
  // The application's client has the option timeoutMS.
  'MongoOperationTimeoutError',
] as const;

/**
 * True if the reply of a write was lost, its write concern was not met, or no server could be reached: it is unknown
 * whether the write took effect, and trying again later makes sense.
 */
export function isResultUnknown(thrown: unknown): boolean {
  const error = unwrap(thrown);
  if (error instanceof OperationTimeoutError) return true;
  if (!isDriverError(error, 'MongoError')) return false;
  return (
    UNKNOWN_RESULTS.some((className) => isDriverError(error, className)) ||
    CLOSED_ERRORS.has(error.name) ||
    (isDriverError(error, 'MongoServerError') && TRANSIENT_CODES.has(Number(error.code))) ||
    // With a write concern error, the driver does not report which writes were rejected.
    (isBulkWriteError(error) && error.result.getWriteConcernError() !== undefined) ||
    error.hasErrorLabel('RetryableWriteError') ||
    error.hasErrorLabel('PoolRequestedRetry')
  );
}

/** Codes for a user who may not do this now: a right, a role or the user was removed, or the login has expired. */
const DENIED_CODES = new Set([11, 13, 18, 31, 391]);

/**
 * True if the same write may succeed later, unchanged: MongoDB cannot be reached, or the user's rights were taken away.
 * An administrator who corrects the rights must not find that finished jobs were recorded as failed.
 */
export function isOutage(thrown: unknown): boolean {
  return isResultUnknown(thrown) || isDenied(thrown);
}

/** True if the database user may not do this now. */
export function isDenied(thrown: unknown): boolean {
  const { code } = (unwrap(thrown) ?? {}) as { code?: unknown };
  return DENIED_CODES.has(Number(code));
}

/** Errors in the connection string or its options, before any server is contacted. */
const INVALID_URI_ERRORS = new Set(['MongoParseError', 'MongoInvalidArgumentError', 'MongoAPIError']);

/** False for an invalid connection string or wrong credentials: retrying does not help. */
export function isTransient(error: Error): boolean {
  return !INVALID_URI_ERRORS.has(error.name) && !isAuthentication(error);
}

/** Says why there is no connection and what to do. */
export function toConnectionError(error: Error, failures: number): ChronosError {
  if (INVALID_URI_ERRORS.has(error.name)) {
    const message = `the connection string is invalid: ${sentence(error.message)} Correct it where it is set (MONGODB_URI, MONGODB_URI_FILE, or the option uri).`;
    return new ChronosError('INVALID_OPTIONS', message, { cause: error });
  }
  const tries = failures === 1 ? 'once' : `${failures} times`;
  const message = `MongoDB could not be reached (tried ${tries}): ${sentence(describeFailure(error))} ${adviceFor(error)}`;
  return new ChronosError('MONGODB_UNREACHABLE', message, { cause: error });
}

/** For `catch()`: turns an outage into an error with a code and advice, and throws other errors again. */
export function explainOutage(thrown: unknown): never {
  throw isResultUnknown(thrown) ? toConnectionError(toError(thrown), 1) : thrown;
}

/** True if MongoDB cannot be reached, also if the error already has a code of its own. */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof ChronosError)
    return error.code === 'MONGODB_UNREACHABLE' && isResultUnknown(error.cause);
  return isResultUnknown(error);
}

/** For `catch()`: turns every error of the driver into one with a code, and throws other errors again. */
export function explainDriverError(thrown: unknown): never {
  if (isResultUnknown(thrown) || !isDriverError(thrown, 'MongoError')) return explainOutage(thrown);
  const code = isDenied(thrown) ? 'NOT_AUTHORIZED' : 'MONGODB_ERROR';
  throw new ChronosError(code, `MongoDB rejected an operation: ${thrown.message}`, { cause: thrown });
}

/** Uses the driver's view of the replica set, because its message only reports that no server was found. */
export function describeFailure(error: Error): string {
  const topology = topologyOf(error);
  if (topology === undefined) return error.message;
  const set = `the replica set '${topology.setName ?? ''}'`;
  // The driver drops servers that answer but belong to another set.
  if (topology.servers.size === 0) return `the servers that answer are not members of ${set}`;
  const servers = [...topology.servers.values()];
  const answering = servers.filter(({ type }) => type !== 'Unknown').length;
  return answering === 0
    ? error.message
    : `${answering} of ${servers.length} members of ${set} answer, and none of them is its primary`;
}

function adviceFor(error: Error): string {
  if (isAuthentication(error)) {
    return 'Check user, password and authSource in the connection string: the server rejects them.';
  }
  if (topologyOf(error)?.servers.size === 0) {
    return 'Correct replicaSet in the connection string, or leave it out for a server that is in no set.';
  }
  return 'Check that the server runs and that the connection string names its host, port and credentials.';
}

/** The topology in which no primary was found. Both the driver's error and mongoose's wrapper have it. */
function topologyOf(error: Error): mongo.TopologyDescription | undefined {
  if (!error.name.endsWith('ServerSelectionError')) return undefined;
  const { reason } = error as { reason?: mongo.TopologyDescription };
  return reason?.type === 'ReplicaSetNoPrimary' ? reason : undefined;
}

function isAuthentication(error: Error): boolean {
  const code = (error as { code?: unknown }).code;
  return code === 18 || /auth/i.test((error as { codeName?: string }).codeName ?? '');
}

function sentence(text: string): string {
  return `${redactCredentials(text).replace(/\.+$/, '')}.`;
}
