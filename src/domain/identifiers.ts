import { ChronosError } from './errors.js';
import { isList } from './language.js';

/** These characters separate the parts of ids. */
const RESERVED = /[@+=]/;
export const MAX_NAME_LENGTH = 200;
export const MAX_KEY_LENGTH = 500;
export const MAX_REASON_LENGTH = 500;
export const MAX_JOB_ID_LENGTH = MAX_NAME_LENGTH + MAX_KEY_LENGTH + 1;

/** For the locks that Chronos takes itself. */
export const RESERVED_LOCK_PREFIX = 'chronos:';

/** What is wrong with the name of a task type, schedule or command. The phrase follows "the name". */
export function findNameError(value: unknown): string | undefined {
  const error = findTextError(value, MAX_NAME_LENGTH);
  if (error !== undefined || !RESERVED.test(value as string)) return error;
  return `must not contain any of @ + =, got '${value as string}'`;
}

export function assertTaskType(value: unknown): asserts value is string {
  throwIfInvalid('a task type', findNameError(value));
}

export function assertScheduleId(value: unknown): asserts value is string {
  throwIfInvalid('the id of a schedule', findNameError(value));
}

export function assertCommandName(value: unknown): asserts value is string {
  throwIfInvalid('the name of a command', findNameError(value));
}

/** Ids come from outside: an object would be read as a query operator. */
export function assertJobId(value: unknown): asserts value is string {
  throwIfInvalid('a job id', findTextError(value, MAX_JOB_ID_LENGTH));
}

export function assertReason(value: unknown): asserts value is string | undefined {
  if (value !== undefined) throwIfInvalid('a reason', findTextError(value, MAX_REASON_LENGTH));
}

export function assertLockName(value: unknown): asserts value is string {
  const error = findTextError(value, MAX_NAME_LENGTH);
  const isReserved = typeof value === 'string' && value.startsWith(RESERVED_LOCK_PREFIX);
  const prefixError = isReserved ? `must not begin with '${RESERVED_LOCK_PREFIX}'` : undefined;
  throwIfInvalid('the name of a lock', error ?? prefixError);
}

function throwIfInvalid(what: string, error: string | undefined): void {
  if (error !== undefined) throw new ChronosError('INVALID_ARGUMENT', `${what} ${error}`);
}

/** What is wrong with a text, as a phrase that follows its name; undefined if it is valid. */
export function findTextError(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') {
    return `must be a string, got ${value === null ? 'null' : isList(value) ? 'an array' : typeof value}`;
  }
  if (value === '') return 'must not be empty';
  if (value.length > maxLength) return `must have at most ${maxLength} characters, got ${value.length}`;
  if (value.includes('\0') || !value.isWellFormed()) return 'must be well-formed text without NUL characters';
  return undefined;
}
