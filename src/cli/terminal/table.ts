import { printable } from '../../domain/text.js';
import { truncate, type Line, type Span, styled, textOf, widthOf } from './styled.js';

const GAP = '  ';
/** Columns become narrower than this only if the table would not fit otherwise. */
const MIN_WIDTH = 6;

export interface Column<T> {
  title: string;
  cell: (row: T) => Span;
  /** For numbers and durations. */
  align?: 'right';
  /** Truncate this column last: for ids, which people copy. */
  keep?: true;
}

interface SizedColumn {
  /** The title, then one cell per row. */
  cells: readonly Span[];
  width: number;
  isRight: boolean;
  isKept: boolean;
}

/** A header and rows, in lines of at most `width` columns. */
export function table<T>(columns: readonly Column<T>[], rows: readonly T[], width: number): Line[] {
  const sized = columns.map(({ title, cell, align, keep }): SizedColumn => {
    const cells = [styled('dim', title.toUpperCase()), ...rows.map(cell)];
    const natural = Math.max(...cells.map((span) => widthOf(printable(textOf(span)))));
    return { cells, width: natural, isRight: align === 'right', isKept: keep === true };
  });
  shrink(sized, width);
  return Array.from({ length: rows.length + 1 }, (_, row) => toLine(sized, row));
}

/** Shrinks the widest column that may be truncated until all columns fit. */
function shrink(columns: readonly SizedColumn[], width: number): void {
  const gaps = GAP.length * (columns.length - 1);
  let excess = columns.reduce((total, column) => total + column.width, gaps) - width;
  const flexible = columns.filter(({ isKept }) => !isKept);
  for (const [shrinkable, min] of [
    [flexible, MIN_WIDTH],
    [columns, MIN_WIDTH],
    [columns, 1],
  ] as const) {
    for (; excess > 0; excess--) {
      const [widest] = shrinkable.toSorted((a, b) => b.width - a.width);
      if (widest === undefined || widest.width <= min) break;
      widest.width--;
    }
  }
}

function toLine(columns: readonly SizedColumn[], row: number): Line {
  const spans = columns.flatMap(({ cells, width, isRight }, index): Span[] => {
    const span = cells[row] ?? '';
    const text = truncate(printable(textOf(span)), width);
    const shown = typeof span === 'string' ? text : styled(span.style, text);
    const padding = ' '.repeat(width - widthOf(text));
    const gap = index === 0 ? '' : GAP;
    return isRight ? [gap + padding, shown] : [gap, shown, padding];
  });
  return trimEnd(spans);
}

function trimEnd(spans: readonly Span[]): Span[] {
  const last = spans.findLastIndex((span) => textOf(span).trim() !== '');
  return spans.slice(0, last + 1).filter((span) => textOf(span) !== '');
}
