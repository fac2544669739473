/** What `read` makes of the arguments of a script. If one is wrong, prints the error and the help, and sets exit code 2. */
export function readOrPrintHelp<T>(read: () => T, help: string): T | undefined {
  try {
    return read();
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${help}`);
    process.exitCode = 2;
    return undefined;
  }
}
