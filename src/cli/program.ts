import { Argument, Command, CommanderError } from 'commander';
import { VERSION } from '../config/version.js';
import { didYouMean } from '../domain/did-you-mean.js';
import { redactCredentials } from '../domain/errors.js';
import { EXIT, EXIT_CODES, exitCodeOf, formatError } from '../process/exit.js';
import { Arguments } from './arguments.js';
import type { CommandSpec } from './command.js';
import { COMMANDS, GROUPS } from './commands/all.js';
import { Context, type Host } from './context.js';
import { Output } from './terminal/output.js';
import { styled } from './terminal/styled.js';
import { table } from './terminal/table.js';

type RunCommand = (spec: CommandSpec, args: Arguments) => Promise<void>;

/** Runs the command, prints its result, and resolves to the exit code. */
export async function runProgram(argv: readonly string[], host: Host): Promise<number> {
  const err = new Output(host.stderr, host.environment);
  let exitCode: number = EXIT.success;
  const program = buildProgram(host, async (spec, args) => {
    exitCode = await runCommand(spec, new Context(args, host));
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has already printed the error or the help page.
    if (error instanceof CommanderError) {
      if (error.code === 'commander.unknownCommand') err.lines(...suggestCommands(error.message));
      return error.exitCode === 0 ? EXIT.success : EXIT.usage;
    }
    err.lines(...formatError(error).map((line) => styled('red', line)));
    return exitCodeOf(error);
  }
}

/** Commands of groups that end with the unknown word: `jobs explain` for `explain`. */
function suggestCommands(message: string): string[] {
  const word = /'(.*)'/.exec(message)?.[1];
  const found = COMMANDS.filter(({ name }) => word !== undefined && name.endsWith(` ${word}`));
  const names = found.map(({ name }) => `\`chronos ${name}\``);
  return names.length === 0 ? [] : [`Did you mean ${names.join(' or ')}?`];
}

export function buildProgram(host: Host, run: RunCommand): Command {
  const { stdout, stderr, environment } = host;
  const out = new Output(stdout, environment);
  const err = new Output(stderr, environment);
  const program = new Command('chronos')
    .description('Run and operate Chronos: workers, jobs and schedules.')
    .version(VERSION, '--version', 'show the version')
    .option('--uri-file <file>', 'file with the connection string of MongoDB (default: MONGODB_URI)')
    .option('--prefix <text>', 'start of the names of all collections (default: PREFIX, or chronos_)')
    .option('--json', 'print JSON')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true, helpWidth: Math.min(110, stdout.columns ?? 100) })
    .configureOutput({
      writeOut: (text) => out.text(text),
      writeErr: (text) => err.text(text),
      // Commander repeats the arguments, which may contain a connection string.
      outputError: (text) => err.text(redactCredentials(text)),
    })
    .showHelpAfterError('Add --help to see the options of the command, with examples.')
    .exitOverride();
  for (const [name, summary] of Object.entries(GROUPS))
    addSubcommand(program, name).summary(summary).description(summary);
  for (const spec of COMMANDS) addCommand(program, spec, run);
  addHelp(program, run);
  return program.addHelpText(
    'after',
    '\nSee also `chronos help exit-codes`. `chronos <command> --help` has examples.',
  );
}

function addCommand(program: Command, spec: CommandSpec, run: RunCommand): void {
  const words = spec.name.split(' ');
  const parent = words.length > 1 ? program.commands.find((group) => group.name() === words[0]) : program;
  if (parent === undefined) throw new Error(`the group of the command '${spec.name}' is missing in GROUPS`);
  const command = addSubcommand(parent, words.at(-1) ?? '')
    .summary(spec.summary)
    .description(`${spec.summary}.`);
  for (const { name, help } of spec.arguments ?? []) command.addArgument(new Argument(name, help));
  for (const option of spec.options ?? []) command.addOption(option);
  const examples = spec.examples.map((example) => `  $ chronos ${example}`).join('\n');
  command.addHelpText('after', `\nExamples:\n${examples}`);
  command.action(() => run(spec, new Arguments(command.args, command.optsWithGlobals())));
}

/** `help <command>` and `help exit-codes`. */
function addHelp(program: Command, run: RunCommand): void {
  const help = addSubcommand(program, 'help').summary('Show help on a command, or on exit-codes');
  help.argument('[words...]', 'a command, such as jobs list').action(async (words: string[]) => {
    if (words.join(' ') === 'exit-codes') return run(exitCodes, new Arguments([], help.optsWithGlobals()));
    let page = program;
    for (const word of words) {
      const names = page.commands.map((command) => command.name());
      const found = page.commands.find((command) => command.name() === word);
      if (found === undefined)
        program.error(`error: there is no command '${words.join(' ')}'${didYouMean(word, names)}`);
      page = found;
    }
    page.help();
  });
}

function addSubcommand(parent: Command, name: string): Command {
  return parent.command(name).helpCommand(false).helpOption('-h, --help', 'show help');
}

async function runCommand(spec: CommandSpec, context: Context): Promise<number> {
  try {
    const result = await spec.run(context);
    if (typeof result === 'number') return result;
    const { isJson, out, clock } = context;
    if (isJson) out.document(result.data);
    else out.lines(...result.lines({ width: out.width, now: clock.now() }));
    return result.exitCode ?? EXIT.success;
  } finally {
    await context.close();
  }
}

const exitCodes: CommandSpec = {
  name: 'help exit-codes',
  summary: 'Show what each exit code means',
  examples: ['help exit-codes'],
  run: () =>
    Promise.resolve({
      data: { exitCodes: EXIT_CODES },
      lines: ({ width }) =>
        table<(typeof EXIT_CODES)[number]>(
          [
            { title: 'code', cell: ({ code }) => String(code), align: 'right', keep: true },
            { title: 'meaning', cell: ({ meaning }) => meaning },
          ],
          EXIT_CODES,
          width,
        ),
    }),
};
