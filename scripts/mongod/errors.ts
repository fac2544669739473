/** Anything that keeps the embedded MongoDB from starting; the message says what to do about it. */
export class EmbeddedMongodError extends Error {
  override readonly name: string = 'EmbeddedMongodError';
}

/** Another process is already running a mongod on the same data. */
export class DataInUseError extends EmbeddedMongodError {
  override readonly name = 'DataInUseError';

  constructor(
    dataPath: string,
    /** Where that mongod listens. */
    readonly uri: string,
  ) {
    super(`${dataPath} is in use by a running MongoDB: ${uri}`);
  }
}
