import { printableJson } from '../../domain/text.js';
import { fitLine, type Line, paint } from './styled.js';

/** The part of a writable stream that is used here. */
export interface Sink {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/** Writes everything that a command prints. */
export class Output {
  readonly isTerminal: boolean;
  readonly #sink: Sink;
  readonly #hasColors: boolean;

  /** Colors only on a terminal, and never if NO_COLOR is set. */
  constructor(sink: Sink, environment: Readonly<Record<string, string | undefined>>) {
    this.#sink = sink;
    this.isTerminal = sink.isTTY === true;
    this.#hasColors =
      this.isTerminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
  }

  /** Columns of the terminal; Infinity (nothing is truncated) if the output is not a terminal. */
  get width(): number {
    return this.isTerminal ? sizeOrDefault(this.#sink.columns, 80) : Infinity;
  }

  get height(): number {
    return sizeOrDefault(this.#sink.rows, 24);
  }

  lines(...lines: readonly Line[]): void {
    if (lines.length > 0)
      this.#sink.write(`${lines.map((line) => paint(line, this.#hasColors)).join('\n')}\n`);
  }

  /** Text of several lines, such as a help page. */
  text(text: string): void {
    this.lines(...text.replace(/\n$/, '').split('\n'));
  }

  document(value: unknown): void {
    this.#sink.write(`${printableJson(value)}\n`);
  }

  /** One of many documents, each on its own line. */
  documentLine(value: unknown): void {
    this.#sink.write(`${printableJson(value, 0)}\n`);
  }

  /** Replaces the last line on a terminal. */
  redraw(line: Line): void {
    this.#sink.write(`\r${paint(line, this.#hasColors)}\u001b[K`);
  }

  /** Replaces the whole screen. */
  screen(lines: readonly Line[]): void {
    const shown = lines
      .slice(0, this.height - 1)
      .map((line) => `${paint(fitLine(line, this.width), this.#hasColors)}\u001b[K`);
    this.#sink.write(`\u001b[H${shown.join('\r\n')}\u001b[J`);
  }

  /** Switches to the alternate screen without a cursor, or back. */
  fullScreen(isFull: boolean): void {
    this.#sink.write(isFull ? '\u001b[?1049h\u001b[?25l' : '\u001b[?25h\u001b[?1049l');
  }
}

/** Some terminals report a size of 0. */
function sizeOrDefault(size: number | undefined, fallback: number): number {
  return size === undefined || size === 0 ? fallback : size;
}
