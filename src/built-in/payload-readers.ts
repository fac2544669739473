import type { Reader } from '../config/readers.js';
import { Refused } from '../worker/refused.js';

/** What `reader` makes of the payload; throws one error that names every fault and what is expected instead. */
export function readPayload<T>(payload: unknown, reader: Reader<T>, expected: string): T {
  const faults: string[] = [];
  const read = reader(payload, 'payload', faults);
  if (read === undefined || faults.length > 0) {
    throw new Refused('INVALID_PAYLOAD', `${faults.join('; ')}. Expected is ${expected}`);
  }
  return read;
}

/** A reader that knows the fault as a phrase that follows the path. It shows no value: that may be a secret. */
export function sound<T>(faultOf: (value: unknown) => string | undefined): Reader<T> {
  return (value, path, faults) => {
    const fault = faultOf(value);
    if (fault === undefined) return value as T;
    faults.push(`${path} ${fault}`);
    return undefined;
  };
}

export const text = sound<string>(textFault);

export const filledText = sound<string>((value) => (value === '' ? 'must not be empty' : textFault(value)));

/** An object of texts whose keys and values `faultOf` agrees with. */
export function texts(
  faultOf: (key: string, value: string) => string | undefined,
): Reader<Record<string, string>> {
  return (value, path, faults) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      faults.push(`${path} must be an object of strings, got ${kindOf(value)}`);
      return undefined;
    }
    const entries = Object.entries(value).map(([key, entry]: [string, unknown]) => {
      const read = sound<string>((one) => textFault(one) ?? faultOf(key, String(one)));
      return [key, read(entry, `${path}.${key}`, faults) ?? ''] as const;
    });
    return Object.fromEntries(entries);
  };
}

function textFault(value: unknown): string | undefined {
  if (typeof value !== 'string') return `must be a string, got ${kindOf(value)}`;
  return value.includes('\0') ? 'must not contain NUL characters: remove them' : undefined;
}

export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return Array.isArray(value) ? 'a list' : `a value of type ${typeof value}`;
}
