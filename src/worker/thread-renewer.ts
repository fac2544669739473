import { extname } from 'node:path';
import { MessageChannel, receiveMessageOnPort, Worker, type MessagePort } from 'node:worker_threads';
import { assertNever } from '../domain/assert-never.js';
import { ChronosError } from '../domain/errors.js';
import type { ClockAnchor } from '../runtime/database-clock.js';
import { sleep } from '../runtime/system-clock.js';
import type { KeptLease, Renewer, RenewalReport } from './renewer.js';
import type { FromThread, ThreadInput, ToThread } from './thread-messages.js';

// The extension is this module's own, so that it loads from dist/ and when TypeScript is run directly.
const ENTRY = new URL(`./renewal-thread${extname(import.meta.url)}`, import.meta.url);

/** A thread that waits for an unreachable database is not waited for. */
const LONGEST_STOP = 6000;

interface Thread {
  worker: Worker;
  port: MessagePort;
  exited: Promise<void>;
}

/** Renews in a thread with connections of its own, and starts another one should it ever die. */
export class ThreadRenewer implements Renewer {
  readonly #input: ThreadInput;
  readonly #leases = new Map<string, KeptLease>();
  #thread: Thread | undefined;
  #report: RenewalReport | undefined;
  #stopping = false;

  constructor({ uri, lockTimeout, connectTimeout }: ThreadInput) {
    // Only what can be handed to a thread: options hold functions too.
    this.#input = { uri, lockTimeout, connectTimeout };
  }

  async start(report: RenewalReport): Promise<void> {
    this.#report = report;
    this.#stopping = false;
    await this.#spawn();
  }

  keep(leases: readonly KeptLease[]): void {
    for (const lease of leases) this.#leases.set(lease.key, lease);
    this.#tell({ kind: 'keep', leases });
  }

  drop(keys: readonly string[]): void {
    for (const key of keys) this.#leases.delete(key);
    this.#tell({ kind: 'drop', keys });
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
    this.#stopping = true;
    const thread = this.#thread;
    if (thread === undefined) return;
    this.#tell({ kind: 'stop' });
    const over = new AbortController();
    await Promise.race([thread.exited, sleep(LONGEST_STOP, over.signal)]);
    over.abort();
    await thread.worker.terminate();
    this.#leases.clear();
  }

  #tell(message: ToThread): void {
    this.#thread?.port.postMessage(message);
  }

  /** Resolves when the thread is connected. */
  async #spawn(): Promise<void> {
    const { port1: port, port2 } = new MessageChannel();
    const worker = new Worker(ENTRY, {
      workerData: { port: port2, input: this.#input },
      transferList: [port2],
    });
    const ready = new Promise<void>((resolve, reject) => {
      port.on('message', (message: FromThread) => {
        if (message.kind === 'ready') resolve();
        else if (message.kind === 'unreachable')
          reject(new ChronosError('MONGODB_UNREACHABLE', message.message));
        else this.#hear(message);
      });
      worker.once('error', reject);
    });
    const exited = new Promise<void>((resolve) => {
      worker.once('exit', () => {
        port.close();
        resolve();
      });
    });
    this.#thread = { worker, port, exited };
    void exited.then(() => this.#respawn(worker));
    await ready;
  }

  /** Locks hold for a while without renewal; a thread that died is replaced before they run out. */
  async #respawn(dead: Worker): Promise<void> {
    if (this.#thread?.worker !== dead) return;
    this.#thread = undefined;
    if (this.#stopping || this.#report === undefined) return;
    this.#report.trouble(new Error('the renewal thread ended unexpectedly and is started again'), 1, 0);
    try {
      await this.#spawn();
      this.#tell({ kind: 'keep', leases: [...this.#leases.values()] });
    } catch (error) {
      this.#report.trouble(error as Error, 2, 0);
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
      case 'ready':
      case 'unreachable':
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
