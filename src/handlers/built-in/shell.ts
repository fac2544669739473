import path from 'node:path';
import { type Environment, inheritedEnvironment } from '../../config/process-env.js';
import { ChronosError } from '../../domain/errors.js';
import { UnrecoverableError } from '../../domain/job/control-flow.js';
import {
  kindOf,
  listOf,
  object,
  possiblyEmptyText,
  requiring,
  type Shape,
  text,
  textMap,
} from '../../domain/validation.js';
import type { HandlerFunction, JobContext } from '../handler.js';
import { parsePayload } from '../payload.js';
import { ProcessGroup, type ShellCommand } from './process-group.js';

export interface ShellResult {
  readonly exitCode: 0;
  /** The first 64 KiB. */
  readonly stdout: string;
  /** The first 64 KiB. */
  readonly stderr: string;
  /** True when one of them was longer. */
  readonly cut: boolean;
}

export interface ShellHandlerOptions {
  /** Absolute paths of the files that a payload may name. */
  readonly files: readonly string[];
  /** The worker's environment; a child process gets only a few harmless variables of it. */
  readonly environment: Environment;
}

/** Handles payloads from outside the code: runs the listed files and nothing else. */
export function shellHandler({ files, environment }: ShellHandlerOptions): HandlerFunction<unknown> {
  return (payload, job) => {
    const command = parseShellPayload(payload);
    assertAllowedFile(command.file, files);
    assertAllowedVariables(command);
    return runShell(command, job, environment);
  };
}

/**
 * Runs a command to its end. Throws `SHELL_FAILED` unless the exit code is 0, and the reason of the job's signal if that
 * was aborted. The command and its children are dead by then.
 */
export async function runShell(
  command: ShellCommand,
  job: JobContext,
  environment: Environment,
): Promise<ShellResult> {
  job.signal.throwIfAborted();
  const group = await start(command, variablesOf(command, job, environment));
  const exit = await Promise.race([group.exit, aborted(job.signal)]);
  if (exit === 'aborted') {
    await group.terminate();
    throw job.signal.reason;
  }
  await group.finish();
  const { stdout, stderr } = group;
  for (const [name, { dropped }] of Object.entries({ stdout, stderr })) {
    if (dropped > 0) job.log(`${name} was cut: its last ${dropped} bytes are not kept`);
  }
  if (exit.code === 0) {
    const cut = stdout.dropped > 0 || stderr.dropped > 0;
    return { exitCode: 0, stdout: stdout.text, stderr: stderr.text, cut };
  }
  const how =
    exit.code === null
      ? `was killed by ${exit.signal ?? 'a signal'}`
      : `ended with exit code ${exit.code}, not 0`;
  const output = stderr.end === '' ? 'it wrote nothing to stderr' : `the end of its stderr:\n${stderr.end}`;
  throw new ChronosError('SHELL_FAILED', `'${command.file}' ${how}; ${output}`);
}

async function start(command: ShellCommand, env: NodeJS.ProcessEnv): Promise<ProcessGroup> {
  try {
    return await ProcessGroup.start(command, env);
  } catch (error) {
    const { file, cwd } = command;
    const { code, message } = error as NodeJS.ErrnoException;
    const where = cwd === undefined ? '' : ` in '${cwd}'`;
    const why: Record<string, string> = {
      ENOENT: `there is no such file${cwd === undefined ? '' : ', or no such directory'} on this worker`,
      EACCES: 'the user of this worker may not execute it: is it a file, with the mode for that?',
    };
    throw new ChronosError(
      'SHELL_FAILED',
      `cannot start '${file}'${where}: ${why[code ?? ''] ?? message}${code === undefined ? '' : ` (${code})`}`,
      { cause: error },
    );
  }
}

function variablesOf(
  { env }: ShellCommand,
  { id, fence }: JobContext,
  environment: Environment,
): NodeJS.ProcessEnv {
  const own: Record<(typeof OWN_VARIABLES)[number], string> = {
    CHRONOS_JOB_ID: id,
    CHRONOS_FENCE: String(fence),
  };
  return { ...inheritedEnvironment(environment), ...env, ...own };
}

function aborted(signal: AbortSignal): Promise<'aborted'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('aborted');
    signal.addEventListener('abort', () => resolve('aborted'), { once: true });
  });
}

function assertAllowedFile(file: string, files: readonly string[]): void {
  if (!path.isAbsolute(file) || path.normalize(file) !== file) {
    throw new UnrecoverableError(
      'SHELL_REFUSED',
      `'${file}' is not an absolute path in its shortest form: ` +
        "name the file as the Scheduler option shellFiles does, such as '/usr/bin/rsync'",
    );
  }
  if (!files.includes(file)) {
    throw new UnrecoverableError(
      'SHELL_REFUSED',
      `this worker does not run '${file}' for a payload from outside its code: ` +
        'to allow it, add it to the Scheduler option shellFiles',
    );
  }
}

function assertAllowedVariables({ env = {} }: ShellCommand): void {
  const rejected = Object.keys(env).filter((name) => LOADS_CODE.test(name));
  if (rejected.length === 0) return;
  throw new UnrecoverableError(
    'SHELL_REFUSED',
    `a payload from outside the code must not set ${rejected.join(', ')}, which can make an allowed file ` +
      'run another: leave it out, or set it in a script and allow that',
  );
}

/**
 * Variables that make a harmless file load or run something else. No such list can be complete; the protection is the
 * list of allowed files.
 */
const LOADS_CODE = new RegExp(
  `^(${[
    'LD_.*|DYLD_.*|GCONV_PATH|PATH|HOME|XDG_.*',
    'ENV|BASH_.*|SHELLOPTS|PS4|EDITOR|VISUAL|PAGER|LESSOPEN|LESSCLOSE',
    'NODE_(?!ENV$).*|NPM_CONFIG_.*|PYTHON.*|PERL5.*|RUBY.*|GIT_.*|CLASSPATH|_?JAVA_.*|JDK_.*',
  ].join('|')})$`,
  'i',
);

const SHELL = '/bin/sh';
/** Set for every child process; a payload cannot override them. */
const OWN_VARIABLES = ['CHRONOS_JOB_ID', 'CHRONOS_FENCE'] as const;

const EXPECTED =
  "['file', 'argument', …], { file, args, cwd, env }, or, for a text that a shell reads, { shell, cwd, env }";

const words = listOf(possiblyEmptyText, { min: 0 });
const surroundings = { cwd: text(), env: textMap(findVariableError) };
const fileCommand = requiring(
  object<Required<ShellCommand>>({
    ...surroundings,
    file: text(),
    args: {
      ...words,
      read: (value, at, errors) => {
        if (Array.isArray(value)) return words.read(value, at, errors);
        errors.push(`${at} must be a list of strings, got ${kindOf(value)}`);
        return undefined;
      },
    },
  }),
  { file: 'set it to the path of a program' },
);
const shellCommand = requiring(
  object<{ shell: string; cwd: string; env: Readonly<Record<string, string>> }>(
    { ...surroundings, shell: text() },
    {
      rejected: {
        file: `cannot be combined with payload.shell, which runs ${SHELL}: leave one of them out`,
        args: 'cannot be combined with payload.shell: write the arguments into its text, or use payload.file',
      },
    },
  ),
  { shell: 'set it to a text that a shell reads' },
);

const command: Shape<ShellCommand> = {
  schema: {},
  read: (payload, at, errors) => {
    if (Array.isArray(payload) && payload.length > 0) {
      const [file = '', ...args] = words.read(payload, at, errors) ?? [];
      if (payload[0] === '') errors.push(`${at}[0] must not be empty`);
      return { file, args };
    }
    if (typeof payload === 'object' && payload !== null && 'shell' in payload) {
      const { shell = '', ...rest } = shellCommand.read(payload, at, errors) ?? {};
      return { ...rest, file: SHELL, args: ['-c', shell] };
    }
    const { file = '', args = [], ...rest } = fileCommand.read(payload, at, errors) ?? {};
    return { ...rest, file, args };
  },
};

/** Throws `INVALID_PAYLOAD`, or `SHELL_REFUSED` for a plain string. */
export function parseShellPayload(payload: unknown): ShellCommand {
  if (typeof payload === 'string') {
    throw new UnrecoverableError(
      'SHELL_REFUSED',
      'the payload is a plain string, which is not passed to a shell: dispatch the file and its arguments ' +
        "as a list, ['ls', '-la'], or ask for a shell by name, { shell: 'ls -la | wc -l' }",
    );
  }
  return parsePayload(command, payload, EXPECTED);
}

function findVariableError(name: string): string | undefined {
  if (name === '' || /[=\0]/.test(name))
    return 'is not a valid name of a variable: it is empty or contains = or NUL';
  return (OWN_VARIABLES as readonly string[]).includes(name) ? 'is set by Chronos: leave it out' : undefined;
}
