import { toError, withoutCredentials } from '../domain/errors.js';
import { printable } from '../domain/printable.js';
import { isChronosError } from './exit.js';

/**
 * The lines that a process says before it ends over an error. One of our own explains itself, and may name a fault on
 * each line; what others threw may have a password in it. Neither may do anything to a terminal.
 */
export function explained(thrown: unknown): string[] {
  const error = toError(thrown);
  if (!isChronosError(error)) return [foreign(error)];
  // What keeps the audit collection from being written is the server's to say: a right that is missing, a full disk.
  const because = error.code === 'AUDIT_UNWRITABLE' ? [foreign(toError(error.cause))] : [];
  return [...error.message.split('\n').map(printable), ...because];
}

function foreign(error: Error): string {
  return printable(`${error.name}: ${withoutCredentials(error).message}`);
}
