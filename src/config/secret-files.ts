import { readFileSync } from 'node:fs';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment with what `<variable>_FILE` names read from that file. Secrets in files are not seen by programs that
 * handlers start, and are how Docker, Kubernetes and systemd hand them over.
 */
export function withSecretFiles(
  environment: Environment,
  variables: readonly string[],
  faults: string[],
): Environment {
  const read = { ...environment };
  for (const variable of variables) {
    const path = environment[`${variable}_FILE`]?.trim() ?? '';
    if (path === '') continue;
    if ((environment[variable]?.trim() ?? '') !== '')
      faults.push(`${variable} and ${variable}_FILE are both set: set one of them`);
    else read[variable] = contentOf(path, `${variable}_FILE`, faults);
  }
  return read;
}

function contentOf(path: string, variable: string, faults: string[]): string {
  try {
    const content = readFileSync(path, 'utf8').trim();
    if (content === '') faults.push(`${variable} names a file that is empty`);
    return content;
  } catch (error) {
    // Not its name: whoever put the secret itself there would find it in the log.
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    faults.push(`${variable} names a file that cannot be read: ${code}`);
    return '';
  }
}
