/** For the default of a switch that must handle every case: a new case does not compile. */
export function assertNever(value: never): never {
  throw new Error(`a case is not handled: ${JSON.stringify(value)}`);
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
