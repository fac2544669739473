/** What Chronos needs of a logger. Pino has it, and so have loggers with the same order of arguments. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export type LogLevel = keyof Logger;
