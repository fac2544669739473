/** Lets everything that is ready run: promises, and what they start, through a few turns of the event loop. */
export async function flushEventLoop(count = 3): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
}
