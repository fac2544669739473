import type { JobDocument } from './job/job.js';
import { tryOr } from './language.js';
import { jsonText, MAX_VALUES, truncateUtf8 } from './text.js';

const MAX_DEPTH = 50;

/**
 * Copies a value that MongoDB can store and return unchanged, or returns every reason why it cannot, each with its path
 * (`payload.items[3].name is …`). Later changes by the caller do not affect the copy. Undefined properties are left
 * out, as in JSON.
 */
export function copyPlainData(value: unknown, name: string): { copy: unknown } | { errors: string[] } {
  const errors: string[] = [];
  const ancestors = new Set<object>();
  let values = 0;

  function reject(path: string, error: string): null {
    errors.push(`${path} ${error}`);
    return null;
  }

  function copy(item: unknown, path: string, depth: number): unknown {
    values++;
    if (values === MAX_VALUES + 1) return reject(path, `exceeds the limit of ${MAX_VALUES} values`);
    if (values > MAX_VALUES) return null;
    switch (typeof item) {
      case 'string':
        return item.isWellFormed() ? item : reject(path, 'has a lone surrogate, which UTF-8 cannot hold');
      case 'number':
      case 'boolean':
        return item;
      case 'object':
        return item === null ? null : copyObject(item, path, depth);
      case 'bigint':
        return reject(path, 'is a bigint; store it as a string');
      case 'undefined':
        return reject(path, 'is undefined; use null');
      default:
        return reject(path, `is a ${typeof item}, which cannot be stored`);
    }
  }

  function copyObject(item: object, path: string, depth: number): unknown {
    if (item instanceof Date) {
      return Number.isNaN(item.getTime()) ? reject(path, 'is an invalid date') : new Date(item.getTime());
    }
    if (isObjectId(item)) return item;
    if (ancestors.has(item)) return reject(path, 'refers back to itself');
    if (depth >= MAX_DEPTH) return reject(path, `is nested deeper than ${MAX_DEPTH} levels`);
    ancestors.add(item);
    const copied = Array.isArray(item) ? copyArray(item, path, depth) : copyRecord(item, path, depth);
    ancestors.delete(item);
    return copied;
  }

  function copyArray(items: readonly unknown[], path: string, depth: number): unknown {
    if (Object.getPrototypeOf(items) !== Array.prototype || Object.keys(items).length > items.length) {
      return reject(path, 'is an array with properties of its own, which would be lost');
    }
    return Array.from(items, (item, index) => copy(item, `${path}[${index}]`, depth + 1));
  }

  function copyRecord(item: object, path: string, depth: number): unknown {
    const prototype: unknown = Object.getPrototypeOf(item);
    if (prototype !== null && prototype !== Object.prototype) {
      return reject(path, `is a ${className(item)}; only plain objects, arrays and dates can be stored`);
    }
    if (Object.getOwnPropertySymbols(item).length > 0)
      return reject(path, 'has a symbol as a key, which would be lost');
    const copied: Record<string, unknown> = {};
    for (const [key, inner] of Object.entries(item)) {
      if (inner === undefined) continue;
      const error = findKeyError(key);
      if (error === undefined) copied[key] = copy(inner, `${path}.${key}`, depth + 1);
      else reject(`${path}.${key}`, error);
    }
    return copied;
  }

  const copied = copy(value, name, 0);
  return errors.length === 0 ? { copy: copied } : { errors };
}

function findKeyError(key: string): string | undefined {
  if (key.startsWith('$')) return "has a key that starts with '$', which MongoDB reads as an operator";
  if (key === '__proto__') return 'has the key __proto__';
  if (key === '_bsontype') return 'has the key _bsontype, which the driver reserves';
  if (key.includes('\0')) return 'has a key with a NUL character';
  if (!key.isWellFormed()) return 'has a key with a lone surrogate, which UTF-8 cannot hold';
  return undefined;
}

/** Checks the prototype, because a payload could forge an own property. */
function isObjectId(item: object): boolean {
  const prototype = Object.getPrototypeOf(item) as { _bsontype?: unknown } | null;
  return prototype !== null && prototype._bsontype === 'ObjectId' && !Object.hasOwn(item, '_bsontype');
}

function className(item: object): string {
  const named: unknown = (item as { constructor?: { name?: unknown } }).constructor?.name;
  return typeof named === 'string' && named !== '' ? named : 'object of an unnamed class';
}

export const MAX_RESULT_BYTES = 16 * 1024;

/**
 * The stored form of a handler's result: the result, or the first part of its JSON text if it is too large or cannot be
 * stored. A job that completed must not fail because of its result.
 */
export function storedResult(value: unknown): Pick<JobDocument, 'result' | 'resultCut'> {
  if (value === undefined || value === null) return { result: null, resultCut: false };
  const copied = tryOr(() => copyPlainData(value, 'result'), { errors: [] });
  const json = jsonText(value);
  if ('copy' in copied && Buffer.byteLength(json) <= MAX_RESULT_BYTES) {
    return { result: copied.copy, resultCut: false };
  }
  return { result: truncateUtf8(json, MAX_RESULT_BYTES), resultCut: true };
}
