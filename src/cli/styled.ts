import { printable } from '../domain/printable.js';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan';

const CODES: Record<Style, number> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 };

/** A piece of text as it is to be shown. It may hold anything: it is made printable where it is written. */
export type Span = string | { readonly text: string; readonly style: Style };

export type Line = Span | readonly Span[];

export function styled(style: Style, text: string): Span {
  return { text, style };
}

export function textOf(span: Span): string {
  return typeof span === 'string' ? span : span.text;
}

/** The one place where text becomes what a terminal gets: the only escape sequences in it are ours. */
export function paint(line: Line, hasColours: boolean): string {
  const spans = typeof line === 'string' || 'text' in line ? [line] : line;
  return spans.map((span) => paintSpan(span, hasColours)).join('');
}

function paintSpan(span: Span, hasColours: boolean): string {
  const text = printable(textOf(span));
  if (typeof span === 'string' || !hasColours) return text;
  return `\u001b[${CODES[span.style]}m${text}\u001b[0m`;
}
