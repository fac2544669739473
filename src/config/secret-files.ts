import { readFileSync } from 'node:fs';
import { ChronosError } from '../domain/errors.js';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment with what `<variable>_FILE` names read from that file. Secrets in files are not seen by programs that
 * handlers start, and are how Docker, Kubernetes and systemd hand them over.
 */
export function withSecretFiles(environment: Environment, variables: readonly string[]): Environment {
  const read = { ...environment };
  for (const variable of variables) {
    const path = environment[`${variable}_FILE`]?.trim() ?? '';
    if (path === '') continue;
    if ((environment[variable]?.trim() ?? '') !== '')
      throw new ChronosError(
        'INVALID_ENVIRONMENT',
        `${variable} and ${variable}_FILE are both set: set one of them`,
      );
    read[variable] = contentOf(path, `${variable}_FILE`);
  }
  return read;
}

function contentOf(path: string, variable: string): string {
  try {
    const content = readFileSync(path, 'utf8').trim();
    if (content !== '') return content;
  } catch (cause) {
    const { message } = cause as Error;
    throw new ChronosError(
      'INVALID_ENVIRONMENT',
      `${variable} names a file that cannot be read: ${message}`,
      { cause },
    );
  }
  throw new ChronosError('INVALID_ENVIRONMENT', `${variable} names a file that is empty: ${path}`);
}
