import { ChronosError, type ErrorCode, toError, redactError } from '../domain/errors.js';
import { printable } from '../domain/text.js';

export const EXIT = { success: 0, failure: 1, usage: 2, unreachable: 3, jobFailed: 4, overruns: 5 } as const;

export const EXIT_CODES: readonly { code: number; meaning: string }[] = [
  { code: EXIT.success, meaning: 'success, or stopped cleanly' },
  {
    code: EXIT.failure,
    meaning:
      'a problem, or not everything was done: jobs left unfinished, a problem found by doctor, no such id, not confirmed',
  },
  {
    code: EXIT.usage,
    meaning:
      'wrong usage or setup: command, option, argument, environment, handlers, a database that is not installed or was installed by a newer version, or a confirmation without a terminal',
  },
  { code: EXIT.unreachable, meaning: 'MongoDB is unreachable, or the connection was lost' },
  {
    code: EXIT.jobFailed,
    meaning: 'a job failed: in the pass of `run`, or the one that `dispatch --wait` waited for',
  },
  { code: EXIT.overruns, meaning: 'too many ticks of `daemon` in a row took too long' },
];

/** Errors in how the process was called or set up: a restart does not help. */
const USAGE_ERRORS: ReadonlySet<ErrorCode> = new Set([
  'INVALID_OPTIONS',
  'INVALID_ARGUMENT',
  'INVALID_PAYLOAD',
  'INVALID_ENVIRONMENT',
  'INVALID_SCHEDULE',
  'SCHEDULE_NEVER_RUNS',
  'SCHEDULE_FROZEN',
  'DEPENDENCY_UNKNOWN',
  'DEPENDENCY_CYCLE',
  'HANDLER_INVALID',
  'HANDLER_EXISTS',
  'COMMAND_UNKNOWN',
  'COLLECTION_TAKEN',
  'NOT_INSTALLED',
  'NEWER_INSTALLATION',
]);

/** Also true for an error of another copy of this package, which the module with the handlers may have loaded. */
export function isChronosError(error: unknown): error is ChronosError {
  return (
    error instanceof ChronosError ||
    (error instanceof Error && error.name === 'ChronosError' && 'code' in error)
  );
}

/** The connection may also be lost later: then the error comes from the driver. */
export async function exitCodeOf(thrown: unknown): Promise<number> {
  if (isChronosError(thrown)) {
    if (thrown.code === 'MONGODB_UNREACHABLE') return EXIT.unreachable;
    if (thrown.code === 'AUDIT_UNWRITABLE') return exitCodeOf(thrown.cause);
    return USAGE_ERRORS.has(thrown.code) ? EXIT.usage : EXIT.failure;
  }
  // Imported here, so that help pages do not load the driver.
  const { isResultUnknown } = await import('../store/mongo-errors.js');
  return isResultUnknown(thrown) ? EXIT.unreachable : EXIT.failure;
}

/**
 * The lines that a process prints before it exits with an error. A ChronosError has one problem per line. Other errors
 * may contain a password, which is redacted. Control characters are made printable.
 */
export function formatError(thrown: unknown): string[] {
  const error = toError(thrown);
  if (!isChronosError(error)) return [formatForeignError(error)];
  // The cause says why the audit entry could not be written: a missing permission, a full disk.
  const cause = error.code === 'AUDIT_UNWRITABLE' ? [formatForeignError(toError(error.cause))] : [];
  const lines = error.message
    .split('\n')
    .map(printable)
    // A stored name in the message may contain a line break: what follows must not look like a message of its own.
    .map((line, index) => (index === 0 || line.startsWith('  ') ? line : `  ${line}`));
  return [...lines, ...cause];
}

function formatForeignError(error: Error): string {
  return printable(`${error.name}: ${redactError(error).message}`);
}

const EXIT_GRACE_MS = 2000;

/** Chronos itself leaves no timer or socket open that would keep the process alive, but handlers may. */
export function exitAfterGrace(code: number): void {
  process.exitCode = code;
  setTimeout(() => {
    console.error('the handlers left a timer, socket or other handle open: exiting anyway');
    process.exit(code);
  }, EXIT_GRACE_MS).unref();
}
