import { GROUPS } from '../../src/cli/commands.js';
import { chronos, type Ended } from './command.js';
import { chronosHere } from './fake-terminal.js';

/**
 * Runs commands: as the built binary the first time each of them is seen, in this process afterwards. A process of its
 * own costs half a second, and shows nothing the second time.
 */
export function eachCommandOnce(): (words: readonly string[], env: Record<string, string>) => Promise<Ended> {
  const seen = new Set<string>();
  return (words, env) => {
    const name = words.slice(0, (words[0] ?? '') in GROUPS ? 2 : 1).join(' ');
    const isFirst = !seen.has(name);
    seen.add(name);
    return isFirst ? chronos(words, env) : chronosHere(words, env);
  };
}
