import { MAX_JOB_ID_LENGTH } from '../../domain/identifiers.js';
import type { TrackedLease } from './lock-renewer.js';

/**
 * Leases in shared memory: the main thread writes, the renewal thread reads when leases are due for renewal. This saves a
 * message per job (10 µs), and a lease is visible even if its handler blocks the main thread.
 *
 * Each slot has a version that is odd during a write: a read between two equal, even versions is consistent.
 */
export const SLOTS = 256;

const KINDS = [undefined, 'job', 'named'] as const;

// A slot: version, kind, prefetched, lengths of token and id (Int32 each); length, renewedAt, renewUntil (Float64 each);
// the token and the id (UTF-16 each, with room for the longest).
const INTEGERS = 6;
const NUMBERS = 3;
const MAX_TOKEN_BYTES = 40;
// A multiple of four keeps the numbers of the next slot aligned.
const MAX_ID_BYTES = Math.ceil(MAX_JOB_ID_LENGTH / 4) * 4;
const TEXT_AT = INTEGERS * 4 + NUMBERS * 8;
const SLOT_BYTES = TEXT_AT + (MAX_TOKEN_BYTES + MAX_ID_BYTES) * 2;
const TABLE_BYTES = SLOTS * SLOT_BYTES;

/** Identifies the content of a slot. */
export interface SlotVersion {
  slot: number;
  version: number;
}

export interface VersionedLease {
  lease: TrackedLease;
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

  /** Returns the version of the written slot. */
  write(slot: number, lease: TrackedLease): number {
    const at = (slot * SLOT_BYTES) / 4;
    const version = Atomics.add(this.#integers, at, 1) + 1;
    this.#integers[at + 1] = KINDS.indexOf(lease.kind);
    this.#integers[at + 2] = lease.prefetched ? 1 : 0;
    this.#integers[at + 3] = lease.token.length;
    this.#integers[at + 4] = lease.id.length;
    const numbers = (slot * SLOT_BYTES + INTEGERS * 4) / 8;
    this.#numbers[numbers] = lease.length;
    this.#numbers[numbers + 1] = lease.renewedAt;
    this.#numbers[numbers + 2] = lease.renewUntil;
    const text = slot * SLOT_BYTES + TEXT_AT;
    this.#text.write(lease.token, text, MAX_TOKEN_BYTES * 2, 'utf16le');
    this.#text.write(lease.id, text + MAX_TOKEN_BYTES * 2, MAX_ID_BYTES * 2, 'utf16le');
    Atomics.store(this.#integers, at, version + 1);
    // Wraps past 2^31, as the slot's own counter does.
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

  /** Undefined if the slot is free or is being written; the next round reads it again. */
  read(slot: number): VersionedLease | undefined {
    const version = this.version(slot);
    const lease = this.#copy(slot);
    return version % 2 !== 0 || lease === undefined || this.version(slot) !== version
      ? undefined
      : { lease, version };
  }

  #copy(slot: number): TrackedLease | undefined {
    const at = (slot * SLOT_BYTES) / 4;
    const [kindIndex = 0, prefetched, tokenLength = 0, idLength = 0] = this.#integers.subarray(
      at + 1,
      at + 5,
    );
    const kind = KINDS[kindIndex];
    if (kind === undefined) return undefined;
    const numbers = (slot * SLOT_BYTES + INTEGERS * 4) / 8;
    const [length = 0, renewedAt = 0, renewUntil = 0] = this.#numbers.subarray(numbers, numbers + NUMBERS);
    const text = slot * SLOT_BYTES + TEXT_AT;
    const idAt = text + MAX_TOKEN_BYTES * 2;
    return {
      kind,
      token: this.#text.toString('utf16le', text, text + tokenLength * 2),
      id: this.#text.toString('utf16le', idAt, idAt + idLength * 2),
      ...{ length, renewedAt, renewUntil, prefetched: prefetched === 1 },
    };
  }
}

/** The renewal thread's view of all tables. A lease stays the same object until its slot changes. */
export class SharedLeases {
  readonly #tables: LeaseTable[];
  readonly #known = new Map<number, VersionedLease>();

  constructor(memories: readonly SharedArrayBuffer[]) {
    this.#tables = memories.map((memory) => new LeaseTable(memory));
  }

  grow(memory: SharedArrayBuffer): void {
    this.#tables.push(new LeaseTable(memory));
  }

  current(): TrackedLease[] {
    for (const [index, table] of this.#tables.entries()) {
      for (let slot = 0; slot < SLOTS; slot++) this.#refresh(index * SLOTS + slot, table, slot);
    }
    return [...this.#known.values()].map(({ lease }) => lease);
  }

  slotsOf(leases: readonly TrackedLease[]): SlotVersion[] {
    const wanted = new Set(leases);
    return [...this.#known]
      .filter(([, { lease }]) => wanted.has(lease))
      .map(([slot, { version }]) => ({ slot, version }));
  }

  #refresh(slot: number, table: LeaseTable, slotInTable: number): void {
    if (this.#known.get(slot)?.version === table.version(slotInTable)) return;
    const read = table.read(slotInTable);
    if (read === undefined) this.#known.delete(slot);
    else this.#known.set(slot, read);
  }
}
