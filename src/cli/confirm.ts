import { createInterface } from 'node:readline/promises';
import { ChronosError } from '../domain/errors.js';
import type { Output } from './output.js';

export interface Asking {
  /** The question is asked beside the answer of the command, which may go into a file. */
  err: Pick<Output, 'isTerminal' | 'lines'>;
  input: NodeJS.ReadableStream & { isTTY?: boolean };
  /** The person said so before. */
  yes: boolean;
}

/** Whether to go on with something that cannot be taken back. Without a terminal it has to be said with --yes. */
export async function confirm({ err, input, yes }: Asking, what: string): Promise<boolean> {
  if (yes) return true;
  if (input.isTTY !== true || !err.isTerminal) {
    throw new ChronosError('INVALID_ARGUMENT', `${what} There is no terminal to ask on: say --yes to go on.`);
  }
  err.lines(`${what} Go on? [y/N]`);
  const reader = createInterface({ input });
  try {
    const answer = await new Promise<string>((resolve) => {
      reader.once('line', resolve).once('close', () => resolve(''));
    });
    return /^\s*y(es)?\s*$/i.test(answer);
  } finally {
    reader.close();
  }
}
