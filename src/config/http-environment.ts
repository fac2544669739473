import { exposures, hostReader, portReader, tokenReader, type HttpOptions } from './http-options.js';
import type { Reader } from './readers.js';

/** Reads a variable; undefined when it is absent, or wrong and named among the faults. */
export type ReadVariable = <T>(variable: string, reader: Reader<T>) => T | undefined;

const NAMES = { host: 'HTTP_HOST', token: 'HTTP_TOKEN', readToken: 'HTTP_READ_TOKEN' };

/** The part of the environment that is about HTTP. Undefined without HTTP_PORT: nothing listens then. */
export function readHttpEnvironment(
  read: ReadVariable,
  number: (reader: Reader<number>) => Reader<number>,
  faults: string[],
): HttpOptions | undefined {
  const port = read('HTTP_PORT', number(portReader));
  const given = {
    host: read(NAMES.host, hostReader),
    token: read(NAMES.token, tokenReader),
    readToken: read(NAMES.readToken, tokenReader),
  };
  if (port === undefined) return undefined;
  const { host, token, readToken } = given;
  const said = {
    ...(host !== undefined && { host }),
    ...(token !== undefined && { token }),
    ...(readToken !== undefined && { readToken }),
  };
  // A token that was found wrong is no missing one.
  if (faults.length === 0) faults.push(...exposures(said, NAMES));
  return { port, ...said };
}
