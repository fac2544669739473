import { listOf, record, type Reader } from '../config/readers.js';
import { Refused } from '../worker/refused.js';
import { filledText, kindOf, readPayload, text, texts } from './payload-readers.js';

export const SHELL = '/bin/sh';
/** Set for every child; a payload does not get to say otherwise. */
export const OWN_VARIABLES = ['CHRONOS_JOB_ID', 'CHRONOS_FENCE'] as const;

/** A file to run and its arguments. No shell reads them. */
export interface ShellCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** The worker's own directory unless given. */
  readonly cwd?: string;
  /** On top of the few variables that every child is given. */
  readonly env?: Readonly<Record<string, string>>;
}

const EXPECTED =
  "['file', 'argument', …], { file, args, cwd, env }, or, for a text that a shell reads, { shell, cwd, env }";

const surroundings = { cwd: filledText, env: texts(variableFault) };
const readParts = listOf(text);
const readFile = record<Required<ShellCommand>>({ ...surroundings, file: filledText, args: everyText });
const readShell = record<{ shell: string; cwd: string; env: Readonly<Record<string, string>> }>(
  { ...surroundings, shell: filledText },
  {
    file: `cannot stand beside payload.shell, which runs ${SHELL}: leave one of them out`,
    args: 'cannot stand beside payload.shell: write the arguments into its text, or use payload.file',
  },
);

/** Throws `INVALID_PAYLOAD`, or `SHELL_REFUSED` for a plain string. */
export function readShellPayload(payload: unknown): ShellCommand {
  if (typeof payload === 'string') {
    throw new Refused(
      'SHELL_REFUSED',
      'the payload is a plain string, which no shell is given: dispatch the file and its arguments ' +
        "as a list, ['ls', '-la'], or ask for a shell by name, { shell: 'ls -la | wc -l' }",
    );
  }
  return readPayload(payload, readCommand, EXPECTED);
}

const readCommand: Reader<ShellCommand> = (payload, path, faults) => {
  if (Array.isArray(payload)) {
    const [file = '', ...args] = readParts(payload, path, faults) ?? [];
    return filledText(file, `${path}[0]`, faults) === undefined ? undefined : { file, args };
  }
  if (typeof payload === 'object' && payload !== null && 'shell' in payload) {
    const { shell = '', ...rest } = readShell(payload, path, faults) ?? {};
    return { ...rest, file: SHELL, args: ['-c', shell] };
  }
  const { file, args = [], ...rest } = readFile(payload, path, faults) ?? {};
  if (file !== undefined) return { ...rest, file, args };
  if (faults.length === 0) faults.push(`${path}.file is missing`);
  return undefined;
};

function everyText(value: unknown, path: string, faults: string[]): readonly string[] | undefined {
  if (Array.isArray(value)) return value.length === 0 ? [] : readParts(value, path, faults);
  faults.push(`${path} must be a list of strings, got ${kindOf(value)}`);
  return undefined;
}

function variableFault(name: string): string | undefined {
  if (name === '' || /[=\0]/.test(name)) return 'is no name of a variable: it is empty or has = or NUL in it';
  return (OWN_VARIABLES as readonly string[]).includes(name) ? 'is set by Chronos: leave it out' : undefined;
}
