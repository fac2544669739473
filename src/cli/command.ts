import type { Context } from './context.js';
import { styled, type Line } from './styled.js';

/** How an answer is shown. */
export interface View {
  /** Cells in a line. */
  width: number;
  now: Date;
}

/** What a command came to: data for programs (`--json`), and lines made of the same data for people. */
export interface Answer {
  data: unknown;
  lines: (view: View) => readonly Line[];
  /** Default 0. */
  exitCode?: number;
}

export interface OptionSpec {
  /** As commander reads it: `--queue <name>`. */
  flags: string;
  help: string;
  /** Throws InvalidArgumentError. Default: the text itself. */
  read?: (text: string) => unknown;
}

export interface ArgumentSpec {
  /** As commander reads it: `<id>`, `[ids...]`. */
  name: string;
  help: string;
}

/** One command. What it prints is what it returns, so that `--json` has nothing to be forgotten about. */
export interface CommandSpec {
  /** `status`, or `jobs list` for one of a group. */
  name: string;
  summary: string;
  arguments?: readonly ArgumentSpec[];
  options?: readonly OptionSpec[];
  /** What follows `chronos ` on the command line; the first is the one in the docs. */
  examples: readonly string[];
  /** Resolves to an answer, or to the exit code of what has printed as it went. */
  run: (context: Context) => Promise<Answer | number>;
}

/** An answer of one sentence. */
export function said(data: unknown, sentence: string, exitCode = 0): Answer {
  return { data, exitCode, lines: () => [sentence] };
}

/** The same for what is not there: exit 1. */
export function notFound(what: string, id: string): Answer {
  const sentence = `There is no ${what} '${id}'.`;
  return { data: { found: false, id }, exitCode: 1, lines: () => [styled('yellow', sentence)] };
}
