/** Node prints its version after the stack of an uncaught error or an unhandled rejection that ends a process. */
const CRASH = /^Node\.js v\d/m;

/**
 * Fails the test if a process that it started had an uncaught error or an unhandled rejection. The exit code alone does
 * not tell: a test may expect another code than 0, or kill the process.
 */
export function assertNoCrash(processName: string, stderr: string): void {
  if (CRASH.test(stderr)) throw new Error(`${processName} had an uncaught error:\n${stderr}`);
}
