import { ChronosError } from '../domain/errors.js';
import { isUncertain } from '../store/faults.js';

export const ERROR_KINDS = ['connection', 'lock', 'decode', 'push', 'cron', 'other'] as const;

/** What went wrong: reaching the database, a lock, reading what is stored, creating a job of a schedule, a rule. */
export type ErrorKind = (typeof ERROR_KINDS)[number];

const LOCK_OPERATIONS = new Set(['renew locks', 'release a lock', 'watch locks']);

/** Errors of the driver, by name: what was cleaned of credentials, or came from another thread, is no instance any more. */
const CUT_OFF =
  /^Mongo(Network|ServerSelection|WaitQueue|PoolCleared|PoolClosed|TopologyClosed|NotConnected|ServerClosed)/;
/** The renewal thread tells of an error by its message alone. */
const CUT_OFF_MESSAGE =
  /\bE(CONN[A-Z]+|PIPE|HOSTUNREACH|NETUNREACH|NOTFOUND|TIMEDOUT)\b|connection .*(closed|timed out)|server selection/i;

/** The kind of trouble that an operation has, as the event `worker:trouble` tells of both. */
export function errorKind(operation: string, error: Error): ErrorKind {
  if (operation === 'reach MongoDB' || isCutOff(error)) return 'connection';
  if (LOCK_OPERATIONS.has(operation)) return 'lock';
  if (operation.startsWith('insert ')) return 'push';
  if (error.name.startsWith('BSON')) return 'decode';
  // What the server refuses to write about a schedule says nothing about its rule.
  if (operation.startsWith('decide on ') && !error.name.startsWith('Mongo')) return 'cron';
  return 'other';
}

/** Also when it is wrapped in an error that explains it. */
function isCutOff(error: Error): boolean {
  if (error instanceof ChronosError && error.code === 'MONGODB_UNREACHABLE') return true;
  if (isUncertain(error) || CUT_OFF.test(error.name) || CUT_OFF_MESSAGE.test(error.message)) return true;
  return error.cause instanceof Error && isCutOff(error.cause);
}
