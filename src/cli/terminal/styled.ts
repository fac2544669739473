import { printable } from '../../domain/text.js';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan';

const CODES: Record<Style, number> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 };

/** Text, with or without a style. It may contain control characters: `paint` makes them printable. */
export type Span = string | { readonly text: string; readonly style: Style };

export type Line = Span | readonly Span[];

export function styled(style: Style, text: string): Span {
  return { text, style };
}

export function textOf(span: Span): string {
  return typeof span === 'string' ? span : span.text;
}

/** Truncates a line to `width` columns. */
export function fitLine(line: Line, width: number): Line {
  let left = width;
  return toSpans(line).map((span) => {
    const text = truncate(printable(textOf(span)), left);
    left -= widthOf(text);
    return typeof span === 'string' ? text : styled(span.style, text);
  });
}

/** One line per fact: its name, then its value. Facts that are null are left out. */
export function factLines(facts: readonly (readonly [name: string, value: Line | null])[]): Line[] {
  return facts.flatMap(([name, value]): Line[] =>
    value === null ? [] : [[styled('dim', name.padEnd(11)), ...toSpans(value)]],
  );
}

/** Puts pieces side by side, on as many lines of `width` columns as they need. */
export function wrap(pieces: readonly (readonly Span[])[], gap: string, width: number): Line[] {
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

/** All output passes through here. Escape sequences in the text are made printable; only the style adds some. */
export function paint(line: Line, hasColors: boolean): string {
  return toSpans(line)
    .map((span) => paintSpan(span, hasColors))
    .join('');
}

function toSpans(line: Line): readonly Span[] {
  return typeof line === 'string' || 'text' in line ? [line] : line;
}

function paintSpan(span: Span, hasColors: boolean): string {
  const text = printable(textOf(span));
  if (typeof span === 'string' || !hasColors) return text;
  return `\u001b[${CODES[span.style]}m${text}\u001b[0m`;
}

/** Characters that are two columns wide: East Asian scripts, wide forms, pictographs. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
/** Characters with no width, such as accents that combine with the character before. */
const MARK = /[\p{M}\u200c\u200d]/u;

/** The width of a text in terminal columns. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** Truncates a text to `width` columns and ends it with `…`. */
export function truncate(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let used = 0;
  let kept = '';
  for (const character of text) {
    used += characterWidth(character);
    if (used > width - 1) break;
    kept += character;
  }
  return width < 1 ? '' : `${kept}…`;
}

function characterWidth(character: string): number {
  return MARK.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
}
