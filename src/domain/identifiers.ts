import { ChronosError } from './errors.js';

const RESERVED = /[@!#]/;
export const MAX_NAME_LENGTH = 200;
export const MAX_KEY_LENGTH = 500;
export const MAX_REASON_LENGTH = 500;
export const MAX_JOB_ID_LENGTH = MAX_NAME_LENGTH + MAX_KEY_LENGTH + 1;

/** Chronos uses lock names with this prefix itself. */
export const RESERVED_LOCK_PREFIX = 'chronos:';

/** An error text that follows the name of the value; undefined if it is valid. */
export function nameFault(value: unknown, reserved = true): string | undefined {
  const fault = textFault(value, MAX_NAME_LENGTH);
  if (fault !== undefined) return fault;
  return reserved && RESERVED.test(value as string)
    ? `must not contain any of @ ! #, got '${value as string}'`
    : undefined;
}

/** `@`, `!` and `#` are reserved, because they separate the parts of ids. */
export function assertTaskType(value: unknown): asserts value is string {
  assertNoFault('a task type', nameFault(value));
}

export function assertScheduleId(value: unknown): asserts value is string {
  assertNoFault('the id of a schedule', nameFault(value));
}

export function assertCommandName(value: unknown): asserts value is string {
  assertNoFault('the name of a command', nameFault(value));
}

export function assertKey(value: unknown): asserts value is string {
  assertNoFault('a key', textFault(value, MAX_KEY_LENGTH));
}

/** Ids come from outside: an object would be read as a query operator. */
export function assertJobId(value: unknown): asserts value is string {
  assertNoFault('a job id', textFault(value, MAX_JOB_ID_LENGTH));
}

export function assertReason(value: unknown): asserts value is string | undefined {
  if (value !== undefined) assertNoFault('a reason', textFault(value, MAX_REASON_LENGTH));
}

export function assertLockName(value: unknown): asserts value is string {
  const fault = textFault(value, MAX_NAME_LENGTH);
  const isReserved = typeof value === 'string' && value.startsWith(RESERVED_LOCK_PREFIX);
  assertNoFault(
    'the name of a lock',
    fault ?? (isReserved ? `must not begin with '${RESERVED_LOCK_PREFIX}'` : undefined),
  );
}

function assertNoFault(what: string, fault: string | undefined): void {
  if (fault !== undefined) throw new ChronosError('INVALID_ARGUMENT', `${what} ${fault}`);
}

/** An error text that follows the name of the value; undefined if it is valid. */
export function textFault(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') {
    return `must be a string, got ${value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value}`;
  }
  if (value === '') return 'must not be empty';
  if (value.length > maxLength) return `must have at most ${maxLength} characters, got ${value.length}`;
  if (value.includes('\0') || !value.isWellFormed()) return 'must be well-formed text without NUL characters';
  return undefined;
}
