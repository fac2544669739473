// Draws the output of a terminal as SVG. Supports only the few escape sequences that `chronos` writes.

const CELL = { width: 7.82, height: 18 } as const;
const MARGIN = { x: 18, top: 52, bottom: 18 } as const;
const COLORS: Record<number, string> = {
  31: '#ff7b72',
  32: '#7ee787',
  33: '#f2cc60',
  34: '#79c0ff',
  36: '#76e3ea',
};
const TEXT = '#e6edf3';
const ESCAPE = '\u001b[';

interface Piece {
  text: string;
  style: string;
}

/** The last frame of the output, on a terminal with this many columns. */
export function toSvg(output: string, columns: number, title: string): string {
  const lines = lastFrame(output)
    .split('\n')
    .map((line) => line.trimEnd());
  while (lines.at(-1) === '') lines.pop();
  const width = Math.ceil(columns * CELL.width + 2 * MARGIN.x);
  const height = MARGIN.top + lines.length * CELL.height + MARGIN.bottom;
  const texts = lines.flatMap((line, index) => {
    const y = MARGIN.top + (index + 0.75) * CELL.height;
    return line === ''
      ? []
      : [`<text x="${MARGIN.x}" y="${y}">${toPieces(line).map(toSpan).join('')}</text>`];
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">
<style>text { fill: ${TEXT}; white-space: pre }</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
<circle cx="20" cy="20" r="6" fill="#ff5f57"/><circle cx="40" cy="20" r="6" fill="#febc2e"/><circle cx="60" cy="20" r="6" fill="#28c840"/>
<text x="${width / 2}" y="25" text-anchor="middle" style="fill: #8b949e">${escapeXml(title)}</text>
${texts.join('\n')}
</svg>
`;
}

/** Without the sequences that set up, clear and leave the screen. */
function lastFrame(output: string): string {
  const frames = output.replaceAll('\r', '').split(`${ESCAPE}H`);
  const [frame = ''] = (frames.at(-1) ?? '').split(`${ESCAPE}J`);
  return frame.replaceAll(`${ESCAPE}K`, '');
}

/** Each remaining escape sequence sets a style. */
function toPieces(line: string): Piece[] {
  const [first = '', ...rest] = line.split(ESCAPE);
  const styledPieces = rest.map((part): Piece => {
    const end = part.indexOf('m');
    return { text: part.slice(end + 1), style: toStyle(Number(part.slice(0, end))) };
  });
  return [{ text: first, style: '' }, ...styledPieces].filter(({ text }) => text !== '');
}

function toStyle(code: number): string {
  if (code === 1) return 'font-weight="700"';
  if (code === 2) return 'fill="#8b949e"';
  const color = COLORS[code];
  return color === undefined ? '' : `fill="${color}"`;
}

function toSpan({ text, style }: Piece): string {
  return style === '' ? escapeXml(text) : `<tspan ${style}>${escapeXml(text)}</tspan>`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
