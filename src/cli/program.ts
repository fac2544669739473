import { Argument, Command, CommanderError, Option } from 'commander';
import { VERSION } from '../config/version.js';
import { hideCredentials } from '../domain/errors.js';
import { hint } from '../domain/nearest.js';
import { EXIT, exitCodeOf } from '../process/exit.js';
import { explained } from '../process/explained.js';
import type { Answer, CommandSpec } from './command.js';
import { COMMANDS, GROUPS } from './commands.js';
import { exitCodes } from './commands/help.js';
import { Context, type Surroundings } from './context.js';
import { Given } from './given.js';
import { Output } from './output.js';
import { styled } from './styled.js';

type Perform = (spec: CommandSpec, given: Given) => Promise<void>;

/** Runs what the arguments say, prints what came of it, and resolves to the exit code. */
export async function runProgram(words: readonly string[], surroundings: Surroundings): Promise<number> {
  const err = new Output(surroundings.stderr, surroundings.environment);
  let exitCode: number = EXIT.fine;
  const program = buildProgram(surroundings, async (spec, given) => {
    exitCode = await perform(spec, new Context(given, surroundings));
  });
  try {
    await program.parseAsync(words, { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has said what was wrong, or shown the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage;
    err.lines(...explained(error).map((line) => styled('red', line)));
    return exitCodeOf(error);
  }
}

/** All commands as commander knows them. */
export function buildProgram(surroundings: Surroundings, run: Perform): Command {
  const { stdout, stderr, environment } = surroundings;
  const out = new Output(stdout, environment);
  const err = new Output(stderr, environment);
  const program = new Command('chronos')
    .description('Everything a person does with a running system of Chronos.')
    .version(VERSION, '--version', 'show the version')
    .option('--uri-file <file>', 'file with the connection string of MongoDB (default: MONGODB_URI)')
    .option('--json', 'print JSON')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true, helpWidth: Math.min(110, stdout.columns ?? 100) })
    .configureOutput({
      writeOut: (text) => out.text(text),
      writeErr: (text) => err.text(text),
      // It repeats what was given, which may be a connection string in the wrong place.
      outputError: (text) => err.text(hideCredentials(text)),
    })
    .showHelpAfterError('Add --help to see what the command takes, with examples.')
    .exitOverride();
  for (const [name, summary] of Object.entries(GROUPS))
    inherited(program, name).summary(summary).description(summary);
  for (const spec of COMMANDS) addCommand(program, spec, run);
  addHelp(program, run);
  return program.addHelpText(
    'after',
    '\nSee also `chronos help exit-codes`. `chronos <command> --help` has examples.',
  );
}

function addCommand(program: Command, spec: CommandSpec, run: Perform): void {
  const words = spec.name.split(' ');
  const parent = words.length > 1 ? program.commands.find((group) => group.name() === words[0]) : program;
  if (parent === undefined) throw new Error(`'${spec.name}' belongs to a group that is not there`);
  const command = inherited(parent, words.at(-1) ?? '')
    .summary(spec.summary)
    .description(`${spec.summary}.`);
  for (const { name, help } of spec.arguments ?? []) command.addArgument(new Argument(name, help));
  for (const { flags, help, read } of spec.options ?? []) {
    const option = new Option(flags, help);
    command.addOption(read === undefined ? option : option.argParser(read));
  }
  const examples = spec.examples.map((example) => `  $ chronos ${example}`).join('\n');
  command.addHelpText('after', `\nExamples:\n${examples}`);
  command.action(async (...given: unknown[]) => {
    const words = given
      .slice(0, -2)
      .flat()
      .filter((word) => typeof word === 'string');
    await run(spec, new Given(words, command.optsWithGlobals()));
  });
}

/** Pages of commands, and `help exit-codes`. */
function addHelp(program: Command, run: Perform): void {
  const help = inherited(program, 'help').summary('Show help on a command, or on exit-codes');
  help.argument('[words...]', 'a command, such as jobs list').action(async (words: string[]) => {
    if (words.join(' ') === 'exit-codes') return run(exitCodes, new Given([], help.optsWithGlobals()));
    let page = program;
    for (const word of words) {
      const names = page.commands.map((command) => command.name());
      const found = page.commands.find((command) => command.name() === word);
      if (found === undefined)
        program.error(`error: there is no command '${words.join(' ')}'${hint(word, names)}`);
      page = found;
    }
    page.help();
  });
}

function inherited(parent: Command, name: string): Command {
  return parent.command(name).helpCommand(false).helpOption('-h, --help', 'show help');
}

async function perform(spec: CommandSpec, context: Context): Promise<number> {
  try {
    const answer = await spec.run(context);
    if (typeof answer === 'number') return answer;
    print(answer, context);
    return answer.exitCode ?? EXIT.fine;
  } finally {
    await context.close();
  }
}

function print({ data, lines }: Answer, { isJson, out, clock }: Context): void {
  if (isJson) out.document(data);
  else out.lines(...lines({ width: out.width, now: clock.now() }));
}
