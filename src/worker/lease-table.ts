import { LONGEST_JOB_ID } from '../domain/names.js';
import type { KeptLease } from './renewer.js';

/**
 * Leases in memory that two threads share: the main thread writes, the renewal thread looks when it is time to renew.
 * A job costs no message, and what was written is there even when the handler that starts next never lets the main
 * thread come to itself again.
 *
 * Each slot has a version, odd while the slot is written: what is read between two equal, even versions is whole.
 */
export const SLOTS = 256;

const KINDS = [undefined, 'job', 'named'] as const;

// A slot: version, kind, buffered, lengths of token and id (Int32 each); length, renewedAt, renewUntil (Float64 each);
// the token, the id (UTF-16 each, as long as an id can be).
const INTEGERS = 6;
const NUMBERS = 3;
const LONGEST_TOKEN = 40;
// A multiple of four keeps the numbers of the next slot aligned.
const LONGEST_ID = Math.ceil(LONGEST_JOB_ID / 4) * 4;
const TEXT_AT = INTEGERS * 4 + NUMBERS * 8;
const SLOT_BYTES = TEXT_AT + (LONGEST_TOKEN + LONGEST_ID) * 2;
const TABLE_BYTES = SLOTS * SLOT_BYTES;

/** A slot as it was at one time. */
export interface SlotVersion {
  slot: number;
  version: number;
}

export class LeaseTable {
  readonly memory: SharedArrayBuffer;
  readonly #integers: Int32Array;
  readonly #numbers: Float64Array;
  readonly #text: Buffer;

  constructor(memory = new SharedArrayBuffer(TABLE_BYTES)) {
    this.memory = memory;
    this.#integers = new Int32Array(memory);
    this.#numbers = new Float64Array(memory);
    this.#text = Buffer.from(memory);
  }

  /** Returns the version that has it. */
  write(slot: number, lease: KeptLease): number {
    const at = (slot * SLOT_BYTES) / 4;
    const version = Atomics.add(this.#integers, at, 1) + 1;
    this.#integers[at + 1] = KINDS.indexOf(lease.kind);
    this.#integers[at + 2] = lease.buffered ? 1 : 0;
    this.#integers[at + 3] = lease.token.length;
    this.#integers[at + 4] = lease.id.length;
    const numbers = (slot * SLOT_BYTES + INTEGERS * 4) / 8;
    this.#numbers[numbers] = lease.length;
    this.#numbers[numbers + 1] = lease.renewedAt;
    this.#numbers[numbers + 2] = lease.renewUntil;
    const text = slot * SLOT_BYTES + TEXT_AT;
    this.#text.write(lease.token, text, LONGEST_TOKEN * 2, 'utf16le');
    this.#text.write(lease.id, text + LONGEST_TOKEN * 2, LONGEST_ID * 2, 'utf16le');
    Atomics.store(this.#integers, at, version + 1);
    // As the slot itself counts, past 2^31 too.
    return (version + 1) | 0;
  }

  clear(slot: number): void {
    const at = (slot * SLOT_BYTES) / 4;
    const version = Atomics.add(this.#integers, at, 1) + 1;
    this.#integers[at + 1] = 0;
    Atomics.store(this.#integers, at, version + 1);
  }

  version(slot: number): number {
    return Atomics.load(this.#integers, (slot * SLOT_BYTES) / 4);
  }

  /** Nothing when the slot is free, or is being written just now: it is looked at again soon. */
  read(slot: number): { lease: KeptLease; version: number } | undefined {
    const version = this.version(slot);
    const lease = this.#copy(slot);
    return version % 2 !== 0 || lease === undefined || this.version(slot) !== version
      ? undefined
      : { lease, version };
  }

  #copy(slot: number): KeptLease | undefined {
    const at = (slot * SLOT_BYTES) / 4;
    const [kindIndex = 0, buffered, tokenLength = 0, idLength = 0] = this.#integers.subarray(at + 1, at + 5);
    const kind = KINDS[kindIndex];
    if (kind === undefined) return undefined;
    const numbers = (slot * SLOT_BYTES + INTEGERS * 4) / 8;
    const [length = 0, renewedAt = 0, renewUntil = 0] = this.#numbers.subarray(numbers, numbers + NUMBERS);
    const text = slot * SLOT_BYTES + TEXT_AT;
    const idAt = text + LONGEST_TOKEN * 2;
    return {
      kind,
      token: this.#text.toString('utf16le', text, text + tokenLength * 2),
      id: this.#text.toString('utf16le', idAt, idAt + idLength * 2),
      ...{ length, renewedAt, renewUntil, buffered: buffered === 1 },
    };
  }
}

/** What the renewal thread sees: the leases in all tables, each the same object as long as its slot has not changed. */
export class SharedLeases {
  readonly #tables: LeaseTable[];
  readonly #known = new Map<number, { lease: KeptLease; version: number }>();

  constructor(memories: readonly SharedArrayBuffer[]) {
    this.#tables = memories.map((memory) => new LeaseTable(memory));
  }

  grow(memory: SharedArrayBuffer): void {
    this.#tables.push(new LeaseTable(memory));
  }

  current(): KeptLease[] {
    for (const [index, table] of this.#tables.entries()) {
      for (let slot = 0; slot < SLOTS; slot++) this.#look(index * SLOTS + slot, table, slot);
    }
    return [...this.#known.values()].map(({ lease }) => lease);
  }

  /** Where the leases were seen. */
  slotsOf(leases: readonly KeptLease[]): SlotVersion[] {
    const asked = new Set(leases);
    return [...this.#known]
      .filter(([, { lease }]) => asked.has(lease))
      .map(([slot, { version }]) => ({ slot, version }));
  }

  #look(slot: number, table: LeaseTable, within: number): void {
    if (this.#known.get(slot)?.version === table.version(within)) return;
    const read = table.read(within);
    if (read === undefined) this.#known.delete(slot);
    else this.#known.set(slot, read);
  }
}
