import assert from 'node:assert/strict';
import { GROUPS } from '../../src/cli/commands/all.js';
import { runChronos, type CommandResult } from './chronos-command.js';
import { runChronosInProcess } from './fake-terminal.js';

interface CliRunner {
  run: (...words: string[]) => Promise<CommandResult>;
  /** Adds `--json`, expects exit code 0 and parses the output. */
  runJson: <T>(...words: string[]) => Promise<T>;
}

/**
 * Runs each command with the built binary the first time, and in this process afterwards: starting a process takes half
 * a second, and once per command is enough.
 */
export function createCliRunner(environment: () => Record<string, string>): CliRunner {
  const used = new Set<string>();

  function run(...words: string[]): Promise<CommandResult> {
    const name = words.slice(0, (words[0] ?? '') in GROUPS ? 2 : 1).join(' ');
    const runCommand = used.has(name) ? runChronosInProcess : runChronos;
    used.add(name);
    return runCommand(words, environment());
  }

  async function runJson<T>(...words: string[]): Promise<T> {
    const { code, stdout, stderr } = await run(...words, '--json');
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}${stdout}`);
    return JSON.parse(stdout) as T;
  }

  return { run, runJson };
}
