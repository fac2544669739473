import { StringDecoder } from 'node:string_decoder';

const MAX_BYTES = 64 * 1024;
const TAIL_BYTES = 2 * 1024;

/** Keeps the first 64 KiB and the last 2 KiB of an output, so that memory stays bounded. */
export class BoundedOutput {
  #head: Buffer | undefined;
  #tail: Buffer = Buffer.alloc(0);
  #total = 0;

  add(chunk: Buffer): void {
    // Copied: a small chunk is a view of a larger buffer and would keep all of it in memory.
    this.#head ??= Buffer.allocUnsafe(MAX_BYTES);
    if (this.#total < MAX_BYTES) chunk.copy(this.#head, this.#total);
    this.#tail = Buffer.concat([this.#tail, chunk.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
    this.#total += chunk.length;
  }

  /** All bytes that were added. */
  get total(): number {
    return this.#total;
  }

  /** Bytes beyond the first 64 KiB. */
  get dropped(): number {
    return Math.max(0, this.#total - MAX_BYTES);
  }

  /** The first 64 KiB, without an incomplete last character. */
  get text(): string {
    const head = this.#head?.subarray(0, Math.min(this.#total, MAX_BYTES)) ?? Buffer.alloc(0);
    return this.dropped > 0 ? new StringDecoder().write(head) : head.toString();
  }

  /** The last lines, for an error message. */
  get end(): string {
    const end = this.#tail.toString();
    if (this.#total <= TAIL_BYTES) return end.trim();
    // The first line is incomplete, perhaps cut within a character.
    const newline = end.trimEnd().indexOf('\n');
    return `… ${(newline < 0 ? end.replace(/^\uFFFD+/, '') : end.slice(newline + 1)).trim()}`;
  }
}
