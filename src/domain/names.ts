import { ChronosError } from './errors.js';

const RESERVED = /[@!#]/;
const LONGEST_NAME = 200;
const LONGEST_KEY = 500;
export const LONGEST_JOB_ID = LONGEST_NAME + LONGEST_KEY + 1;

/** Names of locks that begin like this are the schedulers' own. */
export const OWN_LOCKS = 'chronos:';

/** What is wrong with a name, as a phrase that follows it; undefined when it is good. */
export function nameFault(value: unknown, reserved = true): string | undefined {
  const fault = textFault(value, LONGEST_NAME);
  if (fault !== undefined) return fault;
  return reserved && RESERVED.test(value as string)
    ? `must not contain any of @ ! #, got '${value as string}'`
    : undefined;
}

/** Task types: `@`, `!` and `#` are reserved, because ids are built from names with them. */
export function checkTaskType(value: unknown): asserts value is string {
  refuse('a task type', nameFault(value));
}

/** Schedules: job ids are built from their ids too. */
export function checkScheduleId(value: unknown): asserts value is string {
  refuse('the id of a schedule', nameFault(value));
}

export function checkCommandName(value: unknown): asserts value is string {
  refuse('the name of a command', nameFault(value));
}

export function checkKey(value: unknown): asserts value is string {
  refuse('a key', textFault(value, LONGEST_KEY));
}

/** Ids come from outside: an object here would be an operator in a query. */
export function checkJobId(value: unknown): asserts value is string {
  refuse('a job id', textFault(value, LONGEST_JOB_ID));
}

/** Why a person did something; kept with the job. */
export function checkReason(value: unknown): asserts value is string | undefined {
  if (value !== undefined) refuse('a reason', textFault(value, LONGEST_KEY));
}

export function checkLockName(value: unknown): asserts value is string {
  const fault = textFault(value, LONGEST_NAME);
  const isOwn = typeof value === 'string' && value.startsWith(OWN_LOCKS);
  refuse('the name of a lock', fault ?? (isOwn ? `must not begin with '${OWN_LOCKS}'` : undefined));
}

function refuse(what: string, fault: string | undefined): void {
  if (fault !== undefined) throw new ChronosError('INVALID_ARGUMENT', `${what} ${fault}`);
}

function textFault(value: unknown, longest: number): string | undefined {
  if (typeof value !== 'string') {
    return `must be a string, got ${value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value}`;
  }
  if (value === '') return 'must not be empty';
  if (value.length > longest) return `must have at most ${longest} characters, got ${value.length}`;
  if (value.includes('\0') || !value.isWellFormed()) return 'must be well-formed text without NUL characters';
  return undefined;
}
