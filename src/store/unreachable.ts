import type { mongo } from 'mongoose';
import { ChronosError, hideCredentials, toError } from '../domain/errors.js';
import { isUncertain } from './faults.js';

/** Of a connection string, or of options that do not go together: no server was asked. */
const NOT_ACCEPTED = new Set(['MongoParseError', 'MongoInvalidArgumentError', 'MongoAPIError']);

/** Trouble that may pass by waiting; wrong credentials and malformed connection strings do not. */
export function isPassing(error: Error): boolean {
  return !NOT_ACCEPTED.has(error.name) && !isAuthentication(error);
}

/** Why there is no connection, and what to do about it. */
export function unreachable(error: Error, failures: number): ChronosError {
  if (NOT_ACCEPTED.has(error.name)) {
    const message = `the connection string is not accepted: ${sentence(error.message)} Correct it where it is set (MONGODB_URI, MONGODB_URI_FILE, or the option uri).`;
    return new ChronosError('INVALID_OPTIONS', message, { cause: error });
  }
  const tries = failures === 1 ? 'once' : `${failures} times`;
  const message = `MongoDB could not be reached (tried ${tries}): ${sentence(reasonOf(error))} ${adviceOn(error)}`;
  return new ChronosError('MONGODB_UNREACHABLE', message, { cause: error });
}

/** For a `catch`: whoever asked for something else is to hear of an error with a code. */
export function explainOutage(thrown: unknown): never {
  throw isUncertain(thrown) ? unreachable(toError(thrown), 1) : thrown;
}

/** What the driver knows about the servers tells more than that none was found in time. */
export function reasonOf(error: Error): string {
  const topology = topologyOf(error);
  if (topology === undefined) return error.message;
  const set = `the replica set '${topology.setName ?? ''}'`;
  // The driver drops servers that answer and do not belong to the set it was told to look for.
  if (topology.servers.size === 0) return `the servers that answer are not members of ${set}`;
  const servers = [...topology.servers.values()];
  const answering = servers.filter(({ type }) => type !== 'Unknown').length;
  return answering === 0
    ? error.message
    : `${answering} of ${servers.length} members of ${set} answer, and none of them is its primary`;
}

function adviceOn(error: Error): string {
  if (isAuthentication(error))
    return 'Check user, password and authSource in the connection string: the server answers, and refuses them.';
  const topology = topologyOf(error);
  if (topology?.servers.size === 0)
    return 'Correct replicaSet in the connection string, or leave it out for a server that is in no set.';
  return 'Check that the server runs and that the connection string names its host, port and credentials.';
}

/** Of a set that was looked for in vain. Mongoose has an error of its own for the driver's; both carry it. */
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
  return `${hideCredentials(text).replace(/\.+$/, '')}.`;
}
