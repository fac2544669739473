import { printable } from '../../domain/text.js';
import { truncate, type Line, type Span, styled, textOf, widthOf } from './styled.js';

const GAP = '  ';
/** A column is truncated below this only if nothing else helps. */
const MIN_WIDTH = 6;

export interface Column<T> {
  title: string;
  cell: (row: T) => Span;
  /** For numbers and durations. */
  align?: 'right';
  /** Truncated last: for ids, which people copy. */
  keep?: true;
}

/** A header and rows, in lines of at most `width` columns. */
export function table<T>(columns: readonly Column<T>[], rows: readonly T[], width: number): Line[] {
  const cells = rows.map((row) => columns.map(({ cell }) => cell(row)));
  const natural = columns.map(({ title }, index) =>
    Math.max(widthOf(title), ...cells.map((row) => widthOf(printable(textOf(row[index] ?? ''))))),
  );
  const widths = shrink(columns, natural, width);
  const titles = columns.map(({ title }) => styled('dim', title.toUpperCase()));
  return [titles, ...cells].map((row) => toLine(columns, row, widths));
}

/** Shrinks the widest column that may be truncated until all columns fit. */
function shrink(columns: readonly Column<never>[], natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  const available = width - GAP.length * (columns.length - 1);
  const flexible = columns.flatMap(({ keep }, index) => (keep === true ? [] : [index]));
  const all = columns.map((_, index) => index);
  for (const [indexes, min] of [
    [flexible, MIN_WIDTH],
    [all, MIN_WIDTH],
    [all, 1],
  ] as const) {
    while (sum(widths) > available) {
      const widest = indexes.reduce(
        (best, index) => (at(widths, index) > at(widths, best) ? index : best),
        indexes[0] ?? 0,
      );
      if (at(widths, widest) <= min) break;
      widths[widest] = at(widths, widest) - 1;
    }
  }
  return widths;
}

function toLine(columns: readonly Column<never>[], row: readonly Span[], widths: readonly number[]): Line {
  const spans = columns.flatMap(({ align }, index): Span[] => {
    const span = row[index] ?? '';
    const text = truncate(printable(textOf(span)), at(widths, index));
    const padding = ' '.repeat(Math.max(0, at(widths, index) - widthOf(text)));
    const shown = typeof span === 'string' ? text : styled(span.style, text);
    const isLast = index === columns.length - 1;
    const gap = index === 0 ? '' : GAP;
    return align === 'right' ? [gap + padding, shown] : [gap, shown, isLast ? '' : padding];
  });
  return trimEnd(spans);
}

function trimEnd(spans: readonly Span[]): Span[] {
  const last = spans.findLastIndex((span) => textOf(span).trim() !== '');
  return spans.slice(0, last + 1).filter((span) => textOf(span) !== '');
}

function at(widths: readonly number[], index: number): number {
  return widths[index] ?? 0;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
