const DEEPEST = 50;
/** A few objects that share their parts can stand for billions of values; a payload never needs that many. */
const MOST_VALUES = 1_000_000;

/** What was found wrong, and where (`payload.items[3].name`). */
export interface PayloadFault {
  path: string;
  fault: string;
}

/**
 * A copy of `value` that MongoDB stores and gives back exactly, or every reason why it cannot. A copy, so that
 * what the caller changes afterwards does not reach the job. Properties that are undefined are left out, as in JSON.
 */
export function copyPlainData(value: unknown, name: string): { copy: unknown } | { faults: PayloadFault[] } {
  const faults: PayloadFault[] = [];
  const ancestors = new Set<object>();
  let values = 0;

  function refuse(path: string, fault: string): null {
    faults.push({ path, fault });
    return null;
  }

  function copy(item: unknown, path: string, depth: number): unknown {
    if (++values > MOST_VALUES) {
      return values === MOST_VALUES + 1
        ? refuse(path, `is one value too many: more than ${MOST_VALUES}`)
        : null;
    }
    switch (typeof item) {
      case 'string':
        return item.isWellFormed() ? item : refuse(path, 'has a lone surrogate, which UTF-8 cannot hold');
      case 'number':
      case 'boolean':
        return item;
      case 'object':
        return item === null ? null : copyObject(item, path, depth);
      case 'bigint':
        return refuse(path, 'is a bigint; store it as a string');
      case 'undefined':
        return refuse(path, 'is undefined; use null');
      default:
        return refuse(path, `is a ${typeof item}, which cannot be stored`);
    }
  }

  function copyObject(item: object, path: string, depth: number): unknown {
    if (item instanceof Date) {
      return Number.isNaN(item.getTime()) ? refuse(path, 'is an invalid date') : new Date(item.getTime());
    }
    if (isObjectId(item)) return item;
    if (ancestors.has(item)) return refuse(path, 'refers back to itself');
    if (depth >= DEEPEST) return refuse(path, `is nested deeper than ${DEEPEST} levels`);
    ancestors.add(item);
    const copied = Array.isArray(item) ? copyArray(item, path, depth) : copyRecord(item, path, depth);
    ancestors.delete(item);
    return copied;
  }

  function copyArray(items: readonly unknown[], path: string, depth: number): unknown {
    if (Object.getPrototypeOf(items) !== Array.prototype || Object.keys(items).length > items.length) {
      return refuse(path, 'is an array with properties of its own, which would be lost');
    }
    return Array.from(items, (item, index) => copy(item, `${path}[${index}]`, depth + 1));
  }

  function copyRecord(item: object, path: string, depth: number): unknown {
    const prototype: unknown = Object.getPrototypeOf(item);
    if (prototype !== null && prototype !== Object.prototype) {
      return refuse(path, `is a ${className(item)}; only plain objects, arrays and dates can be stored`);
    }
    if (Object.getOwnPropertySymbols(item).length > 0)
      return refuse(path, 'has a symbol as a key, which would be lost');
    const copied: Record<string, unknown> = {};
    for (const [key, inner] of Object.entries(item)) {
      const at = `${path}.${key}`;
      if (inner === undefined) continue;
      const fault = keyFault(key);
      if (fault === undefined) copied[key] = copy(inner, at, depth + 1);
      else refuse(at, fault);
    }
    return copied;
  }

  const copied = copy(value, name, 0);
  return faults.length === 0 ? { copy: copied } : { faults };
}

function keyFault(key: string): string | undefined {
  if (key.startsWith('$')) return "has a key that starts with '$', which MongoDB reads as an operator";
  if (key === '__proto__') return 'has the key __proto__';
  if (key === '_bsontype') return 'has the key _bsontype, which the driver reserves';
  if (key.includes('\0')) return 'has a key with a NUL character';
  if (!key.isWellFormed()) return 'has a key with a lone surrogate, which UTF-8 cannot hold';
  return undefined;
}

/** Recognised by its class, not by an own property: that could be forged. */
function isObjectId(item: object): boolean {
  const prototype = Object.getPrototypeOf(item) as { _bsontype?: unknown } | null;
  return prototype !== null && prototype._bsontype === 'ObjectId' && !Object.hasOwn(item, '_bsontype');
}

function className(item: object): string {
  const named: unknown = (item as { constructor?: { name?: unknown } }).constructor?.name;
  return typeof named === 'string' && named !== '' ? named : 'object of an unnamed class';
}
