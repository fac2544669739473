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
      'wrong usage: command, option, argument, environment or handlers, or a question with nobody there to answer it',
  },
  { code: EXIT.unreachable, meaning: 'MongoDB is not reachable' },
  {
    code: EXIT.jobFailed,
    meaning: 'a job failed: one of the pass of `run`, or the one that `dispatch --wait` waited for',
  },
  { code: EXIT.overruns, meaning: 'too many ticks of `daemon` in a row took too long' },
];

/** Not the fault of how the process was called or set up. */
const WRONG: ReadonlySet<ErrorCode> = new Set([
  'JOB_NOT_FOUND',
  'LOCK_HELD',
  'NOT_INSTALLED',
  'QUERY_TOO_SLOW',
  'SCHEDULE_EXISTS',
  'SCHEDULE_IN_CODE',
  'SCHEDULE_NOT_FOUND',
  'WAIT_TIMEOUT',
]);

/** Also one of another copy of this package, which a module with handlers may bring. */
export function isChronosError(error: unknown): error is ChronosError {
  return (
    error instanceof ChronosError ||
    (error instanceof Error && error.name === 'ChronosError' && 'code' in error)
  );
}

export function exitCodeOf(error: unknown): number {
  if (!isChronosError(error) || WRONG.has(error.code)) return EXIT.wrong;
  return error.code === 'MONGODB_UNREACHABLE' ? EXIT.unreachable : EXIT.usage;
}
