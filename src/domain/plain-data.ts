import type { JobDocument } from './job/job.js';
import { storedError, toError } from './errors.js';
import { isDateObject, tryOr } from './language.js';
import { jsonText, MAX_VALUES, truncateUtf8 } from './text.js';

const MAX_DEPTH = 50;
/** Copying stops here: a value with a million errors would have a message of a million lines. */
const MAX_ERRORS = 20;
const MAX_PATH_LENGTH = 1000;

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
    if (errors.length === MAX_ERRORS) errors.push('(more errors are not shown)');
    if (errors.length < MAX_ERRORS) errors.push(`${path.slice(0, MAX_PATH_LENGTH)} ${error}`);
    return null;
  }

  function rejectSize(path: string): null {
    values = MAX_VALUES + 1;
    return reject(path, `exceeds the limit of ${MAX_VALUES} values`);
  }

  function copy(item: unknown, path: string, depth: number): unknown {
    if (values > MAX_VALUES || errors.length > MAX_ERRORS) return null;
    if (++values > MAX_VALUES) return rejectSize(path);
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
    if (isDateObject(item)) {
      const time = Date.prototype.getTime.call(item);
      return Number.isNaN(time) ? reject(path, 'is an invalid date') : new Date(time);
    }
    if (isObjectId(item)) return item;
    if (ancestors.has(item)) return reject(path, 'refers back to itself');
    if (depth >= MAX_DEPTH) return reject(path, `is nested deeper than ${MAX_DEPTH} levels`);
    ancestors.add(item);
    try {
      return Array.isArray(item) ? copyArray(item, path, depth) : copyRecord(item, path, depth);
    } catch (thrown) {
      // A getter or a proxy threw, also one deeper inside.
      return reject(path, `cannot be read: ${storedError(toError(thrown)).message}`);
    } finally {
      ancestors.delete(item);
    }
  }

  function copyArray(items: readonly unknown[], path: string, depth: number): unknown {
    const { length } = items;
    // Before anything is allocated: an array of millions of holes takes no memory, but a copy of it would.
    if (length > MAX_VALUES - values) return rejectSize(path);
    if (Object.getPrototypeOf(items) !== Array.prototype || Object.keys(items).length > length) {
      return reject(path, 'is an array with properties of its own, which would be lost');
    }
    return Array.from({ length }, (_, index) => copy(items[index], `${path}[${index}]`, depth + 1));
  }

  function copyRecord(item: object, path: string, depth: number): unknown {
    const prototype: unknown = Object.getPrototypeOf(item);
    if (prototype !== null && prototype !== Object.prototype) {
      return reject(
        path,
        `is a ${className(item)}; only plain objects, arrays, dates and ObjectIds can be stored`,
      );
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

/**
 * Checks the prototype, because a payload could forge an own property, and that there is a value: the driver would store
 * an object that only has the prototype of an id as the id 0.
 */
function isObjectId(item: object): boolean {
  return tryOr(() => {
    const prototype = Object.getPrototypeOf(item) as { _bsontype?: unknown; toHexString?: unknown } | null;
    if (prototype?._bsontype !== 'ObjectId' || Object.hasOwn(item, '_bsontype')) return false;
    if (Reflect.ownKeys(item).length === 0 || typeof prototype.toHexString !== 'function') return false;
    const hex: unknown = prototype.toHexString.call(item);
    return typeof hex === 'string' && /^[0-9a-f]{24}$/.test(hex);
  }, false);
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
