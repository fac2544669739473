import { extname } from 'node:path';
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { ChronosError, toError } from '../../domain/errors.js';
import { assertNever } from '../../domain/language.js';
import type { DatabaseClock } from '../../runtime/database-clock.js';
import { retryDelay } from '../../runtime/retry.js';
import { systemClock } from '../../runtime/system-clock.js';
import { waitAtMost } from '../../runtime/waiting.js';
import { LeaseTable, SLOTS, type SlotVersion, type VersionedLease } from './lease-table.js';
import type { TrackedLease, RenewalReport, Renewer } from './lock-renewer.js';
import type { FromThread, ThreadInput, ToThread } from './renewal-thread.js';

// Same extension as this module, so that it loads both from dist/ and when TypeScript is run directly.
const ENTRY = new URL(`./renewal-thread${extname(import.meta.url)}`, import.meta.url);

const RESPAWN_RETRY = { first: 250, max: 5000 };

type ThreadOptions = Pick<ThreadInput, 'source' | 'lockTimeout' | 'connectTimeout'>;

interface Thread {
  worker: Worker;
  port: MessagePort;
  exited: Promise<void>;
}

/** Renews in a thread that has its own connections. A thread that dies is replaced. */
export class ThreadedRenewer implements Renewer {
  readonly #clock: Pick<DatabaseClock, 'anchor'>;
  readonly #options: ThreadOptions;
  readonly #tables = [new LeaseTable()];
  /** The content of each slot in the tables. */
  readonly #slots: (VersionedLease | undefined)[] = [];
  readonly #slotOf = new Map<TrackedLease, number>();
  #free: number[] = [];
  #shortestLease: number;
  #thread: Thread | undefined;
  #report: RenewalReport | undefined;
  #stopping = new AbortController();
  #respawning: Promise<void> | undefined;
  #onReady: (error?: Error) => void = () => undefined;

  constructor(clock: Pick<DatabaseClock, 'anchor'>, options: ThreadOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#shortestLease = options.lockTimeout;
  }

  async start(report: RenewalReport): Promise<void> {
    this.#report = report;
    this.#stopping = new AbortController();
    await this.#spawn();
  }

  track(leases: readonly TrackedLease[]): void {
    for (const lease of leases) {
      const slot = this.#slotOf.get(lease) ?? this.#takeSlot(lease);
      const version = this.#tableOf(slot).write(slot % SLOTS, lease);
      this.#slots[slot] = { lease, version };
      if (lease.length >= this.#shortestLease) continue;
      this.#shortestLease = lease.length;
      this.#send({ kind: 'shortestLease', length: lease.length });
    }
  }

  untrack(lease: TrackedLease): void {
    const slot = this.#slotOf.get(lease);
    if (slot === undefined) return;
    this.#slotOf.delete(lease);
    this.#slots[slot] = undefined;
    this.#tableOf(slot).clear(slot % SLOTS);
    this.#free.push(slot);
  }

  heartbeat(): void {
    this.#send({ kind: 'heartbeat', clock: this.#clock.anchor });
  }

  flushReports(): void {
    const port = this.#thread?.port;
    if (port === undefined) return;
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      this.#onMessage(next.message as FromThread);
    }
  }

  /** The thread is terminated if it has not ended by then, for example because the database is unreachable. */
  async stop(timeout: number): Promise<void> {
    this.#stopping.abort();
    const thread = this.#thread;
    if (thread === undefined) return;
    this.#send({ kind: 'stop' });
    await waitAtMost(systemClock, timeout, thread.exited);
    await thread.worker.terminate();
    await this.#respawning;
    for (const lease of [...this.#slotOf.keys()]) this.untrack(lease);
  }

  #takeSlot(lease: TrackedLease): number {
    const slot = this.#free.pop() ?? this.#slots.length;
    if (slot === this.#tables.length * SLOTS) {
      const table = new LeaseTable();
      this.#tables.push(table);
      this.#send({ kind: 'grow', table: table.memory });
    }
    this.#slotOf.set(lease, slot);
    return slot;
  }

  #tableOf(slot: number): LeaseTable {
    const table = this.#tables[Math.floor(slot / SLOTS)];
    if (table === undefined) throw new RangeError(`lease table: slot ${slot} does not exist`);
    return table;
  }

  #send(message: ToThread): void {
    this.#thread?.port.postMessage(message);
  }

  /** Resolves when the thread is ready; rejects if it ends before that. */
  async #spawn(): Promise<void> {
    const { port1: port, port2 } = new MessageChannel();
    const tables = this.#tables.map(({ memory }) => memory);
    const input: ThreadInput = { ...this.#options, tables, shortestLease: this.#shortestLease };
    const worker = new Worker(ENTRY, { workerData: { port: port2, input }, transferList: [port2] });
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    const ready = new Promise<void>((resolve, reject) => {
      this.#onReady = (error) => (error === undefined ? resolve() : reject(error));
      worker.once('error', reject);
      void exited.then(() =>
        reject(new ChronosError('WRONG_STATE', 'the renewal thread ended before it was ready')),
      );
    });
    port.on('message', (message: FromThread) => this.#onMessage(message));
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

  /** Replaces a thread that died. Locks stay valid for a while without renewal. */
  async #respawn(): Promise<void> {
    const { signal } = this.#stopping;
    let error = new Error('the renewal thread ended unexpectedly');
    for (let failures = 1; !signal.aborted; failures++) {
      const retryIn = retryDelay(RESPAWN_RETRY, failures);
      this.#report?.error(error, failures, retryIn);
      await systemClock.sleep(retryIn, signal);
      if (signal.aborted) return;
      try {
        await this.#spawn();
        this.#report?.recovered(failures);
        return;
      } catch (thrown) {
        error = toError(thrown);
      }
    }
  }

  #onMessage(message: FromThread): void {
    const report = this.#report;
    if (report === undefined) return;
    switch (message.kind) {
      case 'renewed':
        return report.renewed(this.#leasesAt(message.slots), message.sentAt);
      case 'lost':
        return report.lost(this.#leasesAt(message.slots));
      case 'error':
        return report.error(
          Object.assign(new Error(message.message), { code: message.code }),
          message.failures,
          message.retryIn,
        );
      case 'recovered':
        return report.recovered(message.failures);
      case 'ready':
        return this.#onReady();
      case 'unreachable':
        return this.#onReady(new ChronosError('MONGODB_UNREACHABLE', message.message));
      default:
        return assertNever(message);
    }
  }

  /** Leaves out leases whose slot has been reused or rewritten since. */
  #leasesAt(slots: readonly SlotVersion[]): TrackedLease[] {
    return slots.flatMap(({ slot, version }) => {
      const current = this.#slots[slot];
      return current?.version === version ? [current.lease] : [];
    });
  }
}
