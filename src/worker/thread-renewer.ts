import { extname } from 'node:path';
import { MessageChannel, receiveMessageOnPort, Worker, type MessagePort } from 'node:worker_threads';
import { assertNever } from '../domain/assert-never.js';
import { ChronosError } from '../domain/errors.js';
import type { ClockAnchor } from '../runtime/database-clock.js';
import { systemClock } from '../runtime/system-clock.js';
import { within } from '../runtime/within.js';
import type { KeptLease, Renewer, RenewalReport } from './renewer.js';
import { pack, type FromThread, type ThreadInput, type ToThread } from './thread-messages.js';

// The extension is this module's own, so that it loads from dist/ and when TypeScript is run directly.
const ENTRY = new URL(`./renewal-thread${extname(import.meta.url)}`, import.meta.url);

/** A thread that waits for an unreachable database is not waited for. */
const LONGEST_STOP = 6000;

const FIRST_RETRY = 250;
const LONGEST_RETRY = 5000;

interface Thread {
  worker: Worker;
  port: MessagePort;
  exited: Promise<void>;
}

/** Renews in a thread with connections of its own, and starts another one should it ever die. */
export class ThreadRenewer implements Renewer {
  readonly #input: ThreadInput;
  readonly #leases = new Map<string, KeptLease>();
  #dropped: string[] = [];
  #thread: Thread | undefined;
  #report: RenewalReport | undefined;
  #stopping = new AbortController();
  #respawning: Promise<void> | undefined;
  #onReady: (error?: Error) => void = () => undefined;

  constructor({ uri, lockTimeout, connectTimeout }: ThreadInput) {
    // Only what can be handed to a thread: options hold functions too.
    this.#input = { uri, lockTimeout, connectTimeout };
  }

  async start(report: RenewalReport): Promise<void> {
    this.#report = report;
    this.#stopping = new AbortController();
    await this.#spawn();
  }

  keep(leases: readonly KeptLease[]): void {
    for (const lease of leases) this.#leases.set(lease.key, lease);
    this.#tell({ kind: 'keep', leases: pack(leases) });
  }

  /** Told once for all that end in the same turn of the event loop: to renew one too many is harmless. */
  drop(keys: readonly string[]): void {
    for (const key of keys) this.#leases.delete(key);
    if (this.#dropped.length === 0) setImmediate(() => this.#tellDropped());
    this.#dropped.push(...keys);
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
    this.#leases.clear();
  }

  #tellDropped(): void {
    this.#tell({ kind: 'drop', keys: this.#dropped });
    this.#dropped = [];
  }

  #tell(message: ToThread): void {
    this.#thread?.port.postMessage(message);
  }

  /** Resolves when the thread is connected; rejects when it ends before. */
  async #spawn(): Promise<void> {
    const { port1: port, port2 } = new MessageChannel();
    const worker = new Worker(ENTRY, {
      workerData: { port: port2, input: this.#input },
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
        this.#tell({ kind: 'keep', leases: pack([...this.#leases.values()]) });
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
        for (const key of message.keys) this.#renewedAt(key, message.sentAt);
        report.renewed(message.keys, message.sentAt);
        return;
      case 'lost':
        report.lost(message.keys);
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

  #renewedAt(key: string, sentAt: number): void {
    const lease = this.#leases.get(key);
    if (lease !== undefined) lease.renewedAt = sentAt;
  }
}
