/** Waits a few turns of the event loop, so that everything that needs no I/O and no timer has run. */
export async function flushEventLoop(count = 3): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
}
