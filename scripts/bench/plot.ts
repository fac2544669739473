import type { Figure } from './figures.js';

const [WIDTH, BAR, GAP, LEFT, RIGHT] = [920, 20, 10, 460, 70];
const HEAD = 34;
/** Longer bars are cut; their label has the value. */
const MAX_RATIO = 2.5;

/** The ratio of each figure to its floor as bars; the dashed line is the floor, the tick the target. */
export function plot(figures: readonly Figure[]): string {
  const shown = figures.filter(({ ratio }) => ratio !== null);
  const scale = (WIDTH - LEFT - RIGHT) / MAX_RATIO;
  const height = HEAD + shown.length * (BAR + GAP) + GAP;
  const bars = shown.map((figure, index) => bar(figure, HEAD + index * (BAR + GAP), scale));
  const line = LEFT + scale;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="${line}" y="20" text-anchor="middle" fill="#57606a">floor</text>`,
    ...bars,
    `<line x1="${line}" y1="26" x2="${line}" y2="${height - GAP}" stroke="#57606a" stroke-dasharray="4 3"/>`,
    '</svg>',
    '',
  ].join('\n');
}

function bar({ what, ratio, target, better }: Figure, y: number, scale: number): string {
  const width = Math.min(ratio ?? 0, MAX_RATIO) * scale;
  const missed = target !== null && (better === 'more' ? (ratio ?? 0) < target : (ratio ?? 0) > target);
  const middle = y + BAR / 2 + 4;
  return [
    `<text x="${LEFT - 8}" y="${middle}" text-anchor="end" fill="#1f2328">${escape(what)}</text>`,
    `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${missed ? '#d4843e' : better === 'more' ? '#2f81b7' : '#7a8fb8'}"/>`,
    `<text x="${(LEFT + width + 6).toFixed(1)}" y="${middle}" fill="#1f2328">${(ratio ?? 0).toFixed(2)}</text>`,
    ...(target === null || target > MAX_RATIO
      ? []
      : [
          `<rect x="${(LEFT + target * scale - 1).toFixed(1)}" y="${y - 3}" width="2" height="${BAR + 6}" fill="#1f2328"/>`,
        ]),
  ].join('');
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
