import type { Command } from 'commander';
import { COMMANDS } from '../../src/cli/commands/all.js';
import { buildProgram } from '../../src/cli/program.js';
import { EXIT_CODES } from '../../src/process/exit.js';
import { systemClock } from '../../src/runtime/system-clock.js';

// The reference of the command `chronos`, from its help texts.

/** One section per command: name, summary, example, options. */
export function commandSections(): string {
  const { stdin, stdout, stderr } = process;
  const host = { environment: {}, stdin, stdout, stderr, clock: systemClock, who: 'cli:docs' };
  const program = buildProgram(host, () => Promise.resolve());
  return COMMANDS.map(({ name, summary, examples }) => {
    const command = name.split(' ').reduce((parent, word) => child(parent, word), program);
    const [example = name] = examples;
    return [
      `### ${name}`,
      '',
      `${summary}.`,
      '',
      '```bash',
      `chronos ${example}`,
      '```',
      ...optionRows(command),
    ].join('\n');
  }).join('\n\n');
}

export function exitCodeTable(): string {
  const rows = EXIT_CODES.map(({ code, meaning }) => `| ${code} | ${meaning} |`);
  return ['| code | meaning |', '|---|---|', ...rows].join('\n');
}

function optionRows(command: Command): string[] {
  const help = command.createHelp();
  const rows = [
    ...help.visibleArguments(command).map((argument) => {
      const shown = `${argument.name()}${argument.variadic ? '...' : ''}`;
      return [argument.required ? `<${shown}>` : `[${shown}]`, argument.description] as const;
    }),
    ...help
      .visibleOptions(command)
      .filter(({ long }) => long !== '--help')
      .map((option) => [option.flags, option.description] as const),
  ];
  if (rows.length === 0) return [];
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
  return ['', '| | |', '|---|---|', ...rows.map(([term, meaning]) => `| \`${term}\` | ${cell(meaning)} |`)];
}

function child(parent: Command, word: string): Command {
  const found = parent.commands.find((command) => command.name() === word);
  if (found === undefined) throw new Error(`there is no command ${word}`);
  return found;
}
