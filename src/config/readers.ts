import { readDuration } from '../domain/duration.js';
import { hideCredentials } from '../domain/errors.js';
import { nameFault } from '../domain/names.js';
import { hint } from '../domain/nearest.js';

/** Reads one value; on a fault pushes a sentence that starts with `path` and returns undefined. */
export type Reader<T> = (value: unknown, path: string, faults: string[]) => T | undefined;

/** A reader for each key; keys that are absent from the input are absent from what is read. */
export type Readers<T> = { readonly [K in keyof T]-?: Reader<T[K]> };

/** `why` says what a longer one would break. */
export function duration({ min = 0, max = Infinity, why = '' } = {}): Reader<number> {
  return (value, path, faults) => {
    const read = readDuration(value);
    if ('fault' in read) return fail(faults, `${path} ${read.fault}`);
    if (read.ms < min) return fail(faults, `${path} must be at least ${min} ms, got ${show(value)}`);
    if (read.ms > max) {
      const reason = why === '' ? '' : `: ${why}`;
      return fail(faults, `${path} must be at most ${max} ms, got ${show(value)}${reason}`);
    }
    return read.ms;
  };
}

export function wholeNumber(min: number, max: number): Reader<number> {
  return (value, path, faults) => {
    if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max)
      return value as number;
    return fail(faults, `${path} must be a whole number from ${min} to ${max}, got ${show(value)}`);
  };
}

export function oneOf<T extends string>(...choices: readonly T[]): Reader<T> {
  return (value, path, faults) => {
    const found = choices.find((choice) => choice === value);
    return found ?? fail(faults, `${path} must be one of ${choices.join(', ')}, got ${show(value)}`);
  };
}

export function name({ reserved = false } = {}): Reader<string> {
  return (value, path, faults) => {
    const fault = nameFault(value, reserved);
    return fault === undefined ? (value as string) : fail(faults, `${path} ${fault}`);
  };
}

export function flag(): Reader<boolean> {
  return (value, path, faults) =>
    typeof value === 'boolean' ? value : fail(faults, `${path} must be true or false, got ${show(value)}`);
}

/** Anything `accepts` agrees with; `expected` completes "must be …". */
export function matching<T>(expected: string, accepts: (value: unknown) => value is T): Reader<T> {
  return (value, path, faults) =>
    accepts(value) ? value : fail(faults, `${path} must be ${expected}, got ${show(value)}`);
}

/** The same for values that must never appear in a message. */
export function secret<T>(expected: string, accepts: (value: unknown) => value is T): Reader<T> {
  return (value, path, faults) =>
    accepts(value) ? value : fail(faults, `${path} must be ${expected} (its value is not shown)`);
}

export function listOf<T>(item: Reader<T>, { mayBeEmpty = false } = {}): Reader<readonly T[]> {
  return (value, path, faults) => {
    if (!Array.isArray(value) || (value.length === 0 && !mayBeEmpty)) {
      const least = mayBeEmpty ? '' : ' with at least one entry';
      return fail(faults, `${path} must be a list${least}, got ${show(value)}`);
    }
    const read = value.map((entry: unknown, index) => item(entry, `${path}[${index}]`, faults));
    return read.filter((entry) => entry !== undefined);
  };
}

/** Turns a function that throws a ChronosError into a reader. */
export function throwing<T>(read: (value: unknown) => T): Reader<T> {
  return (value, path, faults) => {
    try {
      return read(value);
    } catch (error) {
      faults.push(`${path}: ${(error as Error).message}`);
      return undefined;
    }
  };
}

/** An object with some of these keys and no others. `refusals` explains keys that people try on purpose. */
export function record<T extends object>(
  readers: Readers<T>,
  refusals: Record<string, string> = {},
): Reader<Partial<T>> {
  return (value, path, faults) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return fail(faults, `${path} must be an object, got ${show(value)}`);
    }
    const known = new Map(Object.entries<Reader<unknown>>(readers as Record<string, Reader<unknown>>));
    const read: Record<string, unknown> = {};
    for (const [key, entry] of Object.entries(value)) {
      if (entry === undefined) continue;
      const reader = known.get(key);
      const at = `${path}.${key}`;
      if (reader === undefined) faults.push(unknownKey(at, key, [...known.keys()], refusals));
      else read[key] = reader(entry, at, faults);
    }
    return read as Partial<T>;
  };
}

function unknownKey(path: string, key: string, known: string[], refusals: Record<string, string>): string {
  if (Object.hasOwn(refusals, key)) return `${path} ${refusals[key] ?? ''}`;
  return `${path} is not an option${hint(key, known)}`;
}

function fail(faults: string[], fault: string): undefined {
  faults.push(fault);
  return undefined;
}

function show(value: unknown): string {
  // Hidden before it is cut: the cut may take away what a password is recognised by.
  if (typeof value === 'string') return `'${hideCredentials(value).slice(0, 80)}'`;
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}
