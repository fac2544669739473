import type { Option } from 'commander';
import { EXIT } from '../process/exit.js';
import type { Context } from './context.js';
import { type Line, styled } from './terminal/styled.js';

export interface View {
  /** Columns of the terminal. */
  width: number;
  now: Date;
}

/** The result of a command: data for programs (`--json`), and lines with the same data for people. */
export interface CommandResult {
  data: unknown;
  lines: (view: View) => readonly Line[];
  /** Default: success. */
  exitCode?: number;
}

/** One command. It returns its result instead of printing it, so every command supports `--json`. */
export interface CommandSpec {
  /** `status`, or `jobs list` for a command of a group. */
  name: string;
  summary: string;
  /** Names in commander's syntax: `<id>`, `[ids...]`. */
  arguments?: readonly { name: string; help: string }[];
  options?: readonly Option[];
  /** Without `chronos `; the docs show the first one. */
  examples: readonly string[];
  /** Resolves to a result, or to the exit code of a command that printed while it ran. */
  run: (context: Context) => Promise<CommandResult | number>;
}

/** A result that is shown as one sentence. */
export function message(data: unknown, sentence: string, exitCode: number = EXIT.success): CommandResult {
  return { data, exitCode, lines: () => [sentence] };
}

export function notFound(kind: string, id: string): CommandResult {
  const sentence = `There is no ${kind} '${id}'.`;
  return { data: { found: false, id }, exitCode: EXIT.failure, lines: () => [styled('yellow', sentence)] };
}
