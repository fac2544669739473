import { extname } from 'node:path';
import { MessageChannel, receiveMessageOnPort, Worker, type MessagePort } from 'node:worker_threads';
import { assertNever } from '../domain/assert-never.js';
import { ChronosError } from '../domain/errors.js';
import type { ClockAnchor } from '../runtime/database-clock.js';
import { systemClock } from '../runtime/system-clock.js';
import { within } from '../runtime/within.js';
import { LeaseTable, SLOTS, type SlotVersion } from './lease-table.js';
import type { KeptLease, Renewer, RenewalReport } from './renewer.js';
import type { FromThread, ThreadInput, ToThread } from './thread-messages.js';

// The extension is this module's own, so that it loads from dist/ and when TypeScript is run directly.
const ENTRY = new URL(`./renewal-thread${extname(import.meta.url)}`, import.meta.url);

/** A thread that waits for an unreachable database is not waited for. */
const LONGEST_STOP = 6000;

const FIRST_RETRY = 250;
const LONGEST_RETRY = 5000;

type ThreadOptions = Pick<ThreadInput, 'uri' | 'lockTimeout' | 'connectTimeout'>;

interface Kept {
  lease: KeptLease;
  version: number;
}

interface Thread {
  worker: Worker;
  port: MessagePort;
  exited: Promise<void>;
}

/** Renews in a thread with connections of its own, and starts another one should it ever die. */
export class ThreadRenewer implements Renewer {
  readonly #options: ThreadOptions;
  readonly #tables = [new LeaseTable()];
  /** What is in each slot of the tables, and where each is. */
  readonly #kept: (Kept | undefined)[] = [];
  readonly #slots = new Map<KeptLease, number>();
  #free: number[] = [];
  #shortest: number;
  #thread: Thread | undefined;
  #report: RenewalReport | undefined;
  #stopping = new AbortController();
  #respawning: Promise<void> | undefined;
  #onReady: (error?: Error) => void = () => undefined;

  constructor({ uri, lockTimeout, connectTimeout }: ThreadOptions) {
    // Only what can be handed to a thread: options hold functions too.
    this.#options = { uri, lockTimeout, connectTimeout };
    this.#shortest = lockTimeout;
  }

  async start(report: RenewalReport): Promise<void> {
    this.#report = report;
    this.#stopping = new AbortController();
    await this.#spawn();
  }

  keep(leases: readonly KeptLease[]): void {
    for (const lease of leases) {
      const slot = this.#slots.get(lease) ?? this.#takeSlot(lease);
      const version = this.#tableOf(slot).write(slot % SLOTS, lease);
      this.#kept[slot] = { lease, version };
      if (lease.length >= this.#shortest) continue;
      this.#shortest = lease.length;
      this.#tell({ kind: 'shorter', length: lease.length });
    }
  }

  drop(lease: KeptLease): void {
    const slot = this.#slots.get(lease);
    if (slot === undefined) return;
    this.#slots.delete(lease);
    this.#kept[slot] = undefined;
    this.#tableOf(slot).clear(slot % SLOTS);
    this.#free.push(slot);
  }

  beat(anchor: ClockAnchor | undefined): void {
    this.#tell({ kind: 'beat', anchor });
  }

  drain(): void {
    const port = this.#thread?.port;
    if (port === undefined) return;
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      this.#hear(next.message as FromThread);
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const thread = this.#thread;
    if (thread === undefined) return;
    this.#tell({ kind: 'stop' });
    await within(systemClock, LONGEST_STOP, thread.exited);
    await thread.worker.terminate();
    await this.#respawning;
    for (const lease of [...this.#slots.keys()]) this.drop(lease);
  }

  #takeSlot(lease: KeptLease): number {
    const slot = this.#free.pop() ?? this.#kept.length;
    if (slot === this.#tables.length * SLOTS) {
      const table = new LeaseTable();
      this.#tables.push(table);
      this.#tell({ kind: 'grow', table: table.memory });
    }
    this.#slots.set(lease, slot);
    return slot;
  }

  #tableOf(slot: number): LeaseTable {
    const table = this.#tables[Math.floor(slot / SLOTS)];
    if (table === undefined) throw new RangeError(`there is no slot ${slot}`);
    return table;
  }

  #tell(message: ToThread): void {
    this.#thread?.port.postMessage(message);
  }

  #input(): ThreadInput {
    const tables = this.#tables.map(({ memory }) => memory);
    return { ...this.#options, tables, shortest: this.#shortest };
  }

  /** Resolves when the thread is ready; rejects when it ends before. */
  async #spawn(): Promise<void> {
    const { port1: port, port2 } = new MessageChannel();
    const worker = new Worker(ENTRY, {
      workerData: { port: port2, input: this.#input() },
      transferList: [port2],
    });
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    const ready = new Promise<void>((resolve, reject) => {
      this.#onReady = (error) => (error === undefined ? resolve() : reject(error));
      worker.once('error', reject);
      void exited.then(() =>
        reject(new ChronosError('WRONG_STATE', 'the renewal thread ended before it was ready')),
      );
    });
    port.on('message', (message: FromThread) => this.#hear(message));
    void exited.then(() => port.close());
    const thread = { worker, port, exited };
    this.#thread = thread;
    try {
      await ready;
    } catch (error) {
      await worker.terminate();
      throw error;
    }
    void exited.then(() => {
      if (this.#thread === thread) this.#respawning = this.#respawn();
    });
  }

  /** Locks hold for a while without renewal; a thread that died is replaced before they run out. */
  async #respawn(): Promise<void> {
    const signal = this.#stopping.signal;
    for (let failures = 1; !signal.aborted; failures++) {
      const retryIn = Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** (failures - 1));
      this.#report?.trouble(new Error('the renewal thread ended unexpectedly'), failures, retryIn);
      await systemClock.sleep(retryIn, signal);
      if (signal.aborted) return;
      try {
        await this.#spawn();
        this.#report?.recovered(failures);
        return;
      } catch {
        // Reported with the next try.
      }
    }
  }

  #hear(message: FromThread): void {
    const report = this.#report;
    if (report === undefined) return;
    switch (message.kind) {
      case 'renewed':
        report.renewed(this.#leasesIn(message.slots), message.sentAt);
        return;
      case 'lost':
        report.lost(this.#leasesIn(message.slots));
        return;
      case 'trouble':
        report.trouble(new Error(message.message), message.failures, message.retryIn);
        return;
      case 'recovered':
        report.recovered(message.failures);
        return;
      case 'ready':
        this.#onReady();
        return;
      case 'unreachable':
        this.#onReady(new ChronosError('MONGODB_UNREACHABLE', message.message));
        return;
      default:
        assertNever(message);
    }
  }

  /** Without those whose slot was given to another meanwhile. */
  #leasesIn(slots: readonly SlotVersion[]): KeptLease[] {
    return slots.flatMap(({ slot, version }) => {
      const kept = this.#kept[slot];
      return kept?.version === version ? [kept.lease] : [];
    });
  }
}
