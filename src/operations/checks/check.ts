import type { CheckParts, SharedFacts } from './facts.js';

export interface Result {
  level: 'ok' | 'warning' | 'error';
  finding: string;
  /** What to do; null where all is well. */
  advice: string | null;
}

/** One thing that may be wrong with an installation. Reads, and writes nothing. */
export interface Check {
  readonly name: string;
  examine(facts: SharedFacts, parts: CheckParts): Promise<Result>;
}

export function ok(finding: string): Result {
  return { level: 'ok', finding, advice: null };
}

export function warning(finding: string, advice: string): Result {
  return { level: 'warning', finding, advice };
}

export function error(finding: string, advice: string): Result {
  return { level: 'error', finding, advice };
}

const SHOWN = 5;

/** `a, b, c and more`. */
export function some(names: readonly string[]): string {
  const more = names.length > SHOWN ? ' and more' : '';
  return `${names.slice(0, SHOWN).join(', ')}${more}`;
}
