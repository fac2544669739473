/** Ends a switch that must handle every case: a new case makes it fail to compile. */
export function assertNever(value: never): never {
  throw new Error(`a case is not handled: ${JSON.stringify(value)}`);
}
