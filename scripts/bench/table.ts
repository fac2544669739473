import { isReached, type Figure } from './figures.js';

const HEAD = ['', 'Chronos', 'floor', 'ratio', 'target'];

/** The figures as a Markdown table. */
export function table(figures: readonly Figure[]): string {
  const rows = [HEAD, ...figures.map(row)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  const lines = rows.map(
    (cells) => `| ${cells.map((cell, column) => pad(cell, column, widths)).join(' | ')} |`,
  );
  const rule = `| ${widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}

function row(figure: Figure): string[] {
  const { what, unit, value, floor, against, ratio, target, better } = figure;
  const reached = isReached(figure);
  const bound = better === 'more' ? '≥' : '≤';
  return [
    what,
    `${short(value)} ${unit}`,
    floor === null ? '' : `${short(floor)}${against === 'the driver alone' ? '' : ` (${against ?? ''})`}`,
    ratio === null ? '' : ratio.toFixed(2),
    target === null ? '' : `${bound} ${target}${reached === true ? '' : ' missed'}`,
  ];
}

function short(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(value >= 10 ? 1 : 2);
}

function pad(cell: string, column: number, widths: readonly number[]): string {
  const width = widths[column] ?? 0;
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}
