import { setTimeout as pause } from 'node:timers/promises';

/** Polls until the condition holds. For state that emits no event, such as documents. */
export async function waitUntil(what: string, holds: () => Promise<boolean>, limit = 60_000): Promise<void> {
  const end = performance.now() + limit;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`after ${limit} ms still not: ${what}`);
    await pause(25);
  }
}
