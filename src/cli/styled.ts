import { printable } from '../domain/printable.js';
import { cutTo, widthOf } from './width.js';

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

/** The line in at most `width` cells. */
export function fitted(line: Line, width: number): Line {
  let left = width;
  return spansOf(line).map((span) => {
    const text = cutTo(printable(textOf(span)), left);
    left -= widthOf(text);
    return typeof span === 'string' ? text : styled(span.style, text);
  });
}

/** Pieces side by side, in as many lines of at most `width` cells as they need. */
export function flowed(pieces: readonly (readonly Span[])[], gap: string, width: number): Line[] {
  const lines: Span[][] = [];
  let used = Infinity;
  for (const piece of pieces) {
    const length = piece.reduce((total, span) => total + widthOf(printable(textOf(span))), 0);
    const last = lines.at(-1);
    if (last !== undefined && used + gap.length + length <= width) {
      last.push(gap, ...piece);
      used += gap.length + length;
    } else {
      lines.push([...piece]);
      used = length;
    }
  }
  return lines;
}

/** The one place where text becomes what a terminal gets: the only escape sequences in it are ours. */
export function paint(line: Line, hasColours: boolean): string {
  return spansOf(line)
    .map((span) => paintSpan(span, hasColours))
    .join('');
}

function spansOf(line: Line): readonly Span[] {
  return typeof line === 'string' || 'text' in line ? [line] : line;
}

function paintSpan(span: Span, hasColours: boolean): string {
  const text = printable(textOf(span));
  if (typeof span === 'string' || !hasColours) return text;
  return `\u001b[${CODES[span.style]}m${text}\u001b[0m`;
}
