import path from 'node:path';
import { ChronosError } from '../../domain/errors.js';
import { UnrecoverableChronosError } from '../../domain/job/control-flow.js';
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
import type { HandlerFunction, JobContext } from '../../domain/job/handler.js';
import { parsePayload } from '../payload.js';
import { ProcessGroup, type ShellCommand } from './process-group.js';

export interface ShellResult {
  readonly exitCode: 0;
  /** The first 64 KiB. */
  readonly stdout: string;
  /** The first 64 KiB. */
  readonly stderr: string;
  /** True if one of them was longer. */
  readonly cut: boolean;
}

/**
 * The built-in task type `shell`, whose payloads may come from outside the code: runs only `files` (absolute paths), and
 * a payload may set only `variables` and those of the language. `environment`: what child processes inherit.
 */
export function shellHandler(options: {
  files: readonly string[];
  variables: readonly string[];
  environment: Readonly<Record<string, string>>;
}): HandlerFunction<unknown> {
  const { files, variables, environment } = options;
  return (payload, job) => {
    const command = parseShellPayload(payload);
    assertAllowedFile(command.file, files);
    assertAllowedVariables(command, variables);
    return runShell(command, job, environment);
  };
}

/**
 * Runs a command and waits for its exit. Throws `SHELL_FAILED` unless the exit code is 0, and the signal's reason if the
 * job is aborted. In every case the command and its children have ended. `inherited`: all that they get from the
 * worker's environment.
 */
export async function runShell(
  command: ShellCommand,
  job: JobContext,
  inherited: Readonly<Record<string, string>>,
): Promise<ShellResult> {
  job.signal.throwIfAborted();
  const own: Record<(typeof OWN_VARIABLES)[number], string> = {
    CHRONOS_JOB_ID: job.id,
    CHRONOS_FENCE: String(job.fence),
  };
  const group = await start(command, { ...inherited, ...command.env, ...own });
  const exit = await Promise.race([group.exit, aborted(job.signal)]);
  if (exit === 'aborted') {
    await group.terminate();
    throw job.signal.reason;
  }
  await group.finish();
  const { stdout, stderr } = group;
  for (const [name, { dropped }] of Object.entries({ stdout, stderr })) {
    if (dropped > 0) job.log(`${name} was truncated: its last ${dropped} bytes are not stored`);
  }
  if (exit.code === 0) {
    const cut = stdout.dropped > 0 || stderr.dropped > 0;
    return { exitCode: 0, stdout: stdout.text, stderr: stderr.text, cut };
  }
  const how =
    exit.code === null
      ? `was killed by ${exit.signal ?? 'a signal'}`
      : `exited with code ${exit.code}, expected 0`;
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
      EACCES: 'the user of this worker may not execute it: check that it is a file with execute permission',
    };
    throw new ChronosError(
      'SHELL_FAILED',
      `cannot start '${file}'${where}: ${why[code ?? ''] ?? message}${code === undefined ? '' : ` (${code})`}`,
      { cause: error },
    );
  }
}

function aborted(signal: AbortSignal): Promise<'aborted'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('aborted');
    signal.addEventListener('abort', () => resolve('aborted'), { once: true });
  });
}

function assertAllowedFile(file: string, files: readonly string[]): void {
  if (!path.isAbsolute(file) || path.normalize(file) !== file) {
    throw new UnrecoverableChronosError(
      'SHELL_REFUSED',
      `'${file}' is not a normalized absolute path: ` +
        "write it as in the Scheduler option shellFiles, such as '/usr/bin/rsync'",
    );
  }
  if (!files.includes(file)) {
    throw new UnrecoverableChronosError(
      'SHELL_REFUSED',
      `this worker may not run '${file}' for a payload from outside its code: ` +
        'to allow it, add it to the Scheduler option shellFiles',
    );
  }
}

/** An allow-list, because any program may have a variable that makes it load or run something else (`RSYNC_RSH`). */
function assertAllowedVariables({ env = {} }: ShellCommand, variables: readonly string[]): void {
  const rejected = Object.keys(env).filter((name) => !LANGUAGE.includes(name) && !variables.includes(name));
  if (rejected.length === 0) return;
  throw new UnrecoverableChronosError(
    'SHELL_REFUSED',
    `a payload from outside the code must not set ${rejected.join(', ')}, which could make an allowed file ` +
      'run other code: leave it out, or allow it with the Scheduler option shellPayloadEnv',
  );
}

const LANGUAGE = ['LANG', 'LC_ALL', 'TZ'];
const SHELL = '/bin/sh';
/** Set for every child process; a payload cannot override them. */
const OWN_VARIABLES = ['CHRONOS_JOB_ID', 'CHRONOS_FENCE'] as const;

const EXPECTED =
  "['file', 'argument', …], { file, args, cwd, env }, or { shell, cwd, env } for a shell command line";

const strings = listOf(possiblyEmptyText, { min: 0 });
const commonFields = { cwd: text(), env: textMap(findVariableError) };
const fileCommand = requiring(
  object<Required<ShellCommand>>({
    ...commonFields,
    file: text(),
    args: {
      ...strings,
      read: (value, at, errors) => {
        if (Array.isArray(value)) return strings.read(value, at, errors);
        errors.push(`${at} must be a list of strings, got ${kindOf(value)}`);
        return undefined;
      },
    },
  }),
  { file: 'set it to the path of a program' },
);
const shellCommand = requiring(
  object<{ shell: string; cwd: string; env: Readonly<Record<string, string>> }>(
    { ...commonFields, shell: text() },
    {
      rejected: {
        file: `cannot be combined with payload.shell, which runs ${SHELL}: leave one of the two out`,
        args: 'cannot be combined with payload.shell: write the arguments into the command line, or use payload.file',
      },
    },
  ),
  { shell: 'set it to a shell command line' },
);

const command: Shape<ShellCommand> = {
  schema: {},
  read: (payload, at, errors) => {
    if (Array.isArray(payload) && payload.length > 0) {
      const [file = '', ...args] = strings.read(payload, at, errors) ?? [];
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
    throw new UnrecoverableChronosError(
      'SHELL_REFUSED',
      'the payload is a plain string, which is not passed to a shell: dispatch the file and its arguments ' +
        "as a list, ['ls', '-la'], or request a shell explicitly, { shell: 'ls -la | wc -l' }",
    );
  }
  return parsePayload(command, payload, EXPECTED);
}

function findVariableError(name: string): string | undefined {
  if (name === '' || /[=\0]/.test(name))
    return 'is not a valid variable name: it is empty or contains = or NUL';
  return (OWN_VARIABLES as readonly string[]).includes(name) ? 'is set by Chronos: leave it out' : undefined;
}
