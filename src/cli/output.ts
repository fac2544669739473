import { printableJson } from '../domain/printable.js';
import { fitted, paint, type Line } from './styled.js';

/** What is needed of a stream of the process. */
export interface Sink {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/** Where everything that a command says goes through. */
export class Output {
  readonly isTerminal: boolean;
  readonly #sink: Sink;
  readonly #hasColours: boolean;

  /** Colours only on a terminal, and never where NO_COLOR is set. */
  constructor(sink: Sink, environment: Readonly<Record<string, string | undefined>>) {
    this.#sink = sink;
    this.isTerminal = sink.isTTY === true;
    this.#hasColours =
      this.isTerminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
  }

  /** Cells in a line. What no person looks at is not cut. */
  get width(): number {
    return this.isTerminal ? known(this.#sink.columns, 80) : Infinity;
  }

  get height(): number {
    return known(this.#sink.rows, 24);
  }

  lines(...lines: readonly Line[]): void {
    if (lines.length > 0)
      this.#sink.write(`${lines.map((line) => paint(line, this.#hasColours)).join('\n')}\n`);
  }

  /** Text of several lines, such as a help page. */
  text(text: string): void {
    this.lines(...text.replace(/\n$/, '').split('\n'));
  }

  document(value: unknown): void {
    this.#sink.write(`${printableJson(value)}\n`);
  }

  /** One of many documents, each on a line of its own. */
  documentLine(value: unknown): void {
    this.#sink.write(`${printableJson(value, 0)}\n`);
  }

  /** In place of the line that was drawn last, on a terminal. */
  redraw(line: Line): void {
    this.#sink.write(`\r${paint(line, this.#hasColours)}\u001b[K`);
  }

  /** In place of the whole screen. */
  screen(lines: readonly Line[]): void {
    const shown = lines
      .slice(0, this.height - 1)
      .map((line) => `${paint(fitted(line, this.width), this.#hasColours)}\u001b[K`);
    this.#sink.write(`\u001b[H${shown.join('\r\n')}\u001b[J`);
  }

  /** A screen of its own without a cursor, or back to where it was. */
  fullScreen(isFull: boolean): void {
    this.#sink.write(isFull ? '\u001b[?1049h\u001b[?25l' : '\u001b[?25h\u001b[?1049l');
  }
}

/** A terminal that nobody has told its size says 0. */
function known(size: number | undefined, otherwise: number): number {
  return size === undefined || size === 0 ? otherwise : size;
}
