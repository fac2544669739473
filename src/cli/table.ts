import { printable } from '../domain/printable.js';
import { styled, textOf, type Line, type Span } from './styled.js';
import { cutTo, widthOf } from './width.js';

const GAP = '  ';
/** No column is cut to less, as long as there is another way. */
const NARROWEST = 6;

export interface Column<T> {
  title: string;
  cell: (row: T) => Span;
  /** Numbers and durations stand to the right. */
  align?: 'right';
  /** What must stay whole, such as an id that is to be copied, is cut last. */
  keep?: true;
}

/** Rows under titles, in lines of at most `width` cells. */
export function table<T>(columns: readonly Column<T>[], rows: readonly T[], width: number): Line[] {
  const cells = rows.map((row) => columns.map(({ cell }) => cell(row)));
  const natural = columns.map(({ title }, index) =>
    Math.max(widthOf(title), ...cells.map((row) => widthOf(printable(textOf(row[index] ?? ''))))),
  );
  const widths = fit(columns, natural, width);
  const titles = columns.map(({ title }) => styled('dim', title.toUpperCase()));
  return [titles, ...cells].map((row) => lineOf(columns, row, widths));
}

/** Takes from the widest column that may be cut until all fit. */
function fit(columns: readonly Column<never>[], natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  const room = width - GAP.length * (columns.length - 1);
  const flexible = columns.flatMap(({ keep }, index) => (keep === true ? [] : [index]));
  const all = columns.map((_, index) => index);
  for (const [indexes, least] of [
    [flexible, NARROWEST],
    [all, NARROWEST],
    [all, 1],
  ] as const) {
    for (let over = sum(widths) - room; over > 0; over = sum(widths) - room) {
      const widest = indexes.reduce(
        (best, index) => (at(widths, index) > at(widths, best) ? index : best),
        indexes[0] ?? 0,
      );
      if (at(widths, widest) <= least) break;
      widths[widest] = at(widths, widest) - 1;
    }
  }
  return widths;
}

function lineOf(columns: readonly Column<never>[], row: readonly Span[], widths: readonly number[]): Line {
  const spans = columns.flatMap(({ align }, index): Span[] => {
    const span = row[index] ?? '';
    const text = cutTo(printable(textOf(span)), at(widths, index));
    const padding = ' '.repeat(Math.max(0, at(widths, index) - widthOf(text)));
    const shown = typeof span === 'string' ? text : styled(span.style, text);
    const isLast = index === columns.length - 1;
    const gap = index === 0 ? '' : GAP;
    return align === 'right' ? [gap + padding, shown] : [gap, shown, isLast ? '' : padding];
  });
  return trimmed(spans);
}

/** Nothing after the last thing to see. */
function trimmed(spans: readonly Span[]): Span[] {
  const last = spans.findLastIndex((span) => textOf(span).trim() !== '');
  return spans.slice(0, last + 1).filter((span) => textOf(span) !== '');
}

function at(widths: readonly number[], index: number): number {
  return widths[index] ?? 0;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
