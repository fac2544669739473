/** For the default branch of an exhaustive switch: an unhandled case does not compile. */
export function assertNever(value: never): never {
  throw new Error(`a case is not handled: ${JSON.stringify(value)}`);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !isList(value);
}

/** Like Array.isArray, which throws for a revoked proxy. */
export function isList(value: unknown): value is unknown[] {
  return tryOr(() => Array.isArray(value), false);
}

/** A real Date, valid or not. Reading the time of an object that only has the prototype of one throws. */
export function isDateObject(value: unknown): value is Date {
  return tryOr(() => value instanceof Date && typeof Date.prototype.getTime.call(value) === 'number', false);
}

/** Not `instanceof Promise`: promises of other libraries or realms are no instances of it. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** Returns `fallback` if `read` throws, as a getter or a proxy may. */
export function tryOr<T>(read: () => T, fallback: T): T {
  try {
    return read();
  } catch {
    return fallback;
  }
}

/** Caches the results of a function. A full cache is emptied: keys may come from input, so it must not grow forever. */
export function memoize<K, V>(compute: (key: K) => V, maxEntries = 1000): (key: K) => V {
  const cache = new Map<K, V>();
  return (key) => {
    const cached = cache.get(key);
    if (cached !== undefined || cache.has(key)) return cached as V;
    const value = compute(key);
    if (cache.size >= maxEntries) cache.clear();
    cache.set(key, value);
    return value;
  };
}

/** Groups items by key, in the order in which the keys first appear. */
export function groupBy<T, K>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, [T, ...T[]]> {
  const groups = new Map<K, [T, ...T[]]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
