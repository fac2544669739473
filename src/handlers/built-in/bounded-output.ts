import { StringDecoder } from 'node:string_decoder';

const MAX_BYTES = 64 * 1024;
const TAIL_BYTES = 2 * 1024;

/** Keeps the beginning and the end of an output of any length in bounded memory. */
export class BoundedOutput {
  #head: Buffer | undefined;
  #tail: Buffer = Buffer.alloc(0);
  #total = 0;

  add(chunk: Buffer): void {
    // Copied, because each small chunk would keep the whole buffer that it is a part of alive.
    this.#head ??= Buffer.allocUnsafe(MAX_BYTES);
    if (this.#total < MAX_BYTES) chunk.copy(this.#head, this.#total);
    this.#tail = Buffer.concat([this.#tail, chunk.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
    this.#total += chunk.length;
  }

  /** All bytes that were added, including those that were not kept. */
  get total(): number {
    return this.#total;
  }

  /** Bytes after the first part. */
  get dropped(): number {
    return Math.max(0, this.#total - MAX_BYTES);
  }

  /** The first part, without a character that was cut in half. */
  get text(): string {
    const head = this.#head?.subarray(0, Math.min(this.#total, MAX_BYTES)) ?? Buffer.alloc(0);
    return this.dropped > 0 ? new StringDecoder().write(head) : head.toString();
  }

  /** The last lines. */
  get end(): string {
    const end = this.#tail.toString();
    if (this.#total <= TAIL_BYTES) return end.trim();
    // The first line is incomplete, perhaps cut within a character.
    const newline = end.trimEnd().indexOf('\n');
    return `… ${(newline < 0 ? end.replace(/^\uFFFD+/, '') : end.slice(newline + 1)).trim()}`;
  }
}
