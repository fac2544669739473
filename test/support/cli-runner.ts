import { GROUPS } from '../../src/cli/commands/all.js';
import { runChronos, type CommandResult } from './chronos-command.js';
import { runChronosInProcess } from './fake-terminal.js';

/**
 * Runs commands: as the built binary the first time each of them is seen, in this process afterwards. A process of its
 * own costs half a second, and shows nothing the second time.
 */
export function createCliRunner(): (
  words: readonly string[],
  env: Record<string, string>,
) => Promise<CommandResult> {
  const seen = new Set<string>();
  return (words, env) => {
    const name = words.slice(0, (words[0] ?? '') in GROUPS ? 2 : 1).join(' ');
    const isFirst = !seen.has(name);
    seen.add(name);
    return isFirst ? runChronos(words, env) : runChronosInProcess(words, env);
  };
}
