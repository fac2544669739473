const HANDLERS_GRACE_MS = 2000;

/** Chronos leaves nothing behind that keeps the process alive; a handler's module may. */
export function exitSoon(code: number): void {
  process.exitCode = code;
  setTimeout(() => {
    console.error('something that the handlers opened keeps the process alive: exiting anyway');
    process.exit(code);
  }, HANDLERS_GRACE_MS).unref();
}
