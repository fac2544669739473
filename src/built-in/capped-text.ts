import { StringDecoder } from 'node:string_decoder';

const MOST_BYTES = 64 * 1024;
const TAIL_BYTES = 2 * 1024;

/** The first part of an output of any length, and its end, in memory that does not grow. */
export class CappedText {
  #head: Buffer | undefined;
  #tail: Buffer = Buffer.alloc(0);
  #total = 0;

  add(chunk: Buffer): void {
    // Copied: many small chunks would each keep the memory they are a part of.
    this.#head ??= Buffer.allocUnsafe(MOST_BYTES);
    if (this.#total < MOST_BYTES) chunk.copy(this.#head, this.#total);
    this.#tail = Buffer.concat([this.#tail, chunk.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
    this.#total += chunk.length;
  }

  /** Bytes that came, those that were not kept included. */
  get total(): number {
    return this.#total;
  }

  /** Bytes that came after the first part. */
  get dropped(): number {
    return Math.max(0, this.#total - MOST_BYTES);
  }

  /** The first part. A character that the cut went through is left out. */
  get text(): string {
    const head = this.#head?.subarray(0, Math.min(this.#total, MOST_BYTES)) ?? Buffer.alloc(0);
    return this.dropped > 0 ? new StringDecoder().write(head) : head.toString();
  }

  /** The last lines. */
  get end(): string {
    const end = this.#tail.toString();
    if (this.#total <= TAIL_BYTES) return end.trim();
    // The first line was cut, perhaps within a character.
    const newline = end.trimEnd().indexOf('\n');
    return `… ${(newline < 0 ? end.replace(/^\uFFFD+/, '') : end.slice(newline + 1)).trim()}`;
  }
}
