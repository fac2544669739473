import path from 'node:path';
import { Refused } from '../worker/refused.js';
import { ChronosError } from '../domain/errors.js';
import type { HandlerFunction, JobContext } from '../worker/handler.js';
import { ProcessGroup } from './process-group.js';
import { readShellPayload, type OWN_VARIABLES, type ShellCommand } from './shell-payload.js';

export { readShellPayload, type ShellCommand } from './shell-payload.js';

export interface ShellResult {
  readonly exitCode: 0;
  /** The first 64 KiB. */
  readonly stdout: string;
  /** The first 64 KiB. */
  readonly stderr: string;
  /** True when one of them was longer. */
  readonly cut: boolean;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ShellHandlerOptions {
  /** Absolute paths of the files that a payload may name. */
  readonly files: readonly string[];
  /** The worker's environment; a child is given only a few harmless variables of it. */
  readonly environment: Environment;
}

const INHERITED = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];

/** Variables that make a harmless file load or run something else. No such list is complete: `files` is the fence. */
const LOADING = new RegExp(
  `^(${[
    'LD_.*|DYLD_.*|GCONV_PATH|PATH|HOME|XDG_.*',
    'ENV|BASH_.*|SHELLOPTS|PS4|EDITOR|VISUAL|PAGER|LESSOPEN|LESSCLOSE',
    'NODE_(?!ENV$).*|NPM_CONFIG_.*|PYTHON.*|PERL5.*|RUBY.*|GIT_.*|CLASSPATH|_?JAVA_.*|JDK_.*',
  ].join('|')})$`,
  'i',
);

/** A handler for payloads from outside the code: runs the listed files and nothing else. */
export function shellHandler({ files, environment }: ShellHandlerOptions): HandlerFunction<unknown> {
  return (payload, job) => {
    const command = readShellPayload(payload);
    checkFile(command.file, files);
    checkVariables(command);
    return runShell(command, job, environment);
  };
}

/**
 * Runs a command to its end. Throws `SHELL_FAILED` when that is not an exit code of 0, and the reason of the job's
 * signal when it was aborted; the command and its children are dead by then.
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
    await group.end();
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
  const said = stderr.end === '' ? 'it wrote nothing to stderr' : `the end of its stderr:\n${stderr.end}`;
  throw new ChronosError('SHELL_FAILED', `'${command.file}' ${how}; ${said}`);
}

function checkFile(file: string, files: readonly string[]): void {
  if (!path.isAbsolute(file) || path.normalize(file) !== file) {
    throw new Refused(
      'SHELL_REFUSED',
      `'${file}' is not an absolute path in its shortest form: ` +
        "name the file as the Scheduler option shellFiles does, such as '/usr/bin/rsync'",
    );
  }
  if (!files.includes(file)) {
    throw new Refused(
      'SHELL_REFUSED',
      `this worker does not run '${file}' for a payload from outside its code: ` +
        'to allow it, add it to the Scheduler option shellFiles',
    );
  }
}

function checkVariables({ env = {} }: ShellCommand): void {
  const refused = Object.keys(env).filter((name) => LOADING.test(name));
  if (refused.length === 0) return;
  throw new Refused(
    'SHELL_REFUSED',
    `a payload from outside the code must not set ${refused.join(', ')}, which can make an allowed file ` +
      'run another: leave it out, or set it in a script and allow that',
  );
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
  const inherited = INHERITED.filter((name) => environment[name] !== undefined);
  const own: Record<(typeof OWN_VARIABLES)[number], string> = {
    CHRONOS_JOB_ID: id,
    CHRONOS_FENCE: String(fence),
  };
  return { ...Object.fromEntries(inherited.map((name) => [name, environment[name]])), ...env, ...own };
}

function aborted(signal: AbortSignal): Promise<'aborted'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('aborted');
    signal.addEventListener('abort', () => resolve('aborted'), { once: true });
  });
}
