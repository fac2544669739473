import { ChronosError, type ErrorCode } from '../domain/errors.js';

/** How a process of Chronos ends. The table below says what each means. */
export const EXIT = { fine: 0, wrong: 1, usage: 2, unreachable: 3, jobFailed: 4, overruns: 5 } as const;

export const EXIT_CODES: readonly { code: number; meaning: string }[] = [
  { code: EXIT.fine, meaning: 'all is well, or stopped cleanly' },
  {
    code: EXIT.wrong,
    meaning:
      'something is wrong or not all was done: work left behind, a finding of doctor, nothing of that id, an answer of no',
  },
  {
    code: EXIT.usage,
    meaning:
      'wrong usage or set-up: command, option, argument, environment or handlers, a database that is not installed, or a question with nobody there to answer it',
  },
  { code: EXIT.unreachable, meaning: 'MongoDB is not reachable, or was lost on the way' },
  {
    code: EXIT.jobFailed,
    meaning: 'a job failed: one of the pass of `run`, or the one that `dispatch --wait` waited for',
  },
  { code: EXIT.overruns, meaning: 'too many ticks of `daemon` in a row took too long' },
];

/** How the process was called or set up: starting it again does not mend that. */
const USAGE: ReadonlySet<ErrorCode> = new Set([
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
]);

/** Also one of another copy of this package, which a module with handlers may bring. */
export function isChronosError(error: unknown): error is ChronosError {
  return (
    error instanceof ChronosError ||
    (error instanceof Error && error.name === 'ChronosError' && 'code' in error)
  );
}

/** Of a worker and a command alike. The database may also go away in the middle: then an error of the driver says so. */
export async function exitCodeOf(thrown: unknown): Promise<number> {
  if (isChronosError(thrown)) {
    if (thrown.code === 'MONGODB_UNREACHABLE') return EXIT.unreachable;
    if (thrown.code === 'AUDIT_UNWRITABLE') return exitCodeOf(thrown.cause);
    return USAGE.has(thrown.code) ? EXIT.usage : EXIT.wrong;
  }
  // Loaded here: a page of help has no need of the driver.
  const { isUncertain } = await import('../store/faults.js');
  return isUncertain(thrown) ? EXIT.unreachable : EXIT.wrong;
}
