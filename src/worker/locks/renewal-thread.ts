import { type MessagePort, workerData } from 'node:worker_threads';
import { toError } from '../../domain/errors.js';
import { AnchoredClock, type ClockAnchor, DatabaseClock } from '../../runtime/database-clock.js';
import { EventBus } from '../../runtime/event-bus.js';
import type { DatabaseSource } from '../../store/connection.js';
import type { Lease } from '../../store/jobs/renew.js';
import { SharedLeases, type SlotVersion } from './lease-table.js';
import { RenewalLoop } from './lock-renewer.js';

export interface ThreadInput {
  /** With a connection string: clients cannot be passed to a thread. */
  source: DatabaseSource;
  lockTimeout: number;
  connectTimeout: number;
  /** The existing lease tables. */
  tables: readonly SharedArrayBuffer[];
  /** The shortest lease in them, in milliseconds. */
  shortestLease: number;
}

export type ToThread =
  | { kind: 'grow'; table: SharedArrayBuffer }
  | { kind: 'shortestLease'; length: number }
  | { kind: 'heartbeat'; clock: ClockAnchor }
  | { kind: 'stop' };

export type FromThread =
  | { kind: 'ready' }
  | { kind: 'unreachable'; message: string }
  | { kind: 'renewed'; slots: readonly SlotVersion[]; sentAt: number }
  | { kind: 'lost'; slots: readonly SlotVersion[] }
  | { kind: 'recovered'; failures: number }
  | { kind: 'error'; message: string; code: unknown; failures: number; retryIn: number };

// The renewal thread has its own connection pool and renews the leases that the main thread writes to shared memory.
const { port, input } = workerData as { port: MessagePort; input: ThreadInput };

/** With leases shorter than this, the thread connects ahead: there is no time for it when the first one is due. */
const CONNECT_AHEAD_MS = 15_000;

const send = (message: FromThread): void => port.postMessage(message);

const clock = new AnchoredClock();
let connected: ReturnType<typeof connect> | undefined;

/** Also loads the driver: if all jobs are short, the thread needs neither driver nor connection. */
async function connectOnce(timeout: number): ReturnType<typeof connect> {
  connected ??= connect(timeout);
  connected.catch(() => (connected = undefined));
  return connected;
}

async function connect(timeout: number) {
  const [{ connect: open, renewalTimeout }, { renew }] = await Promise.all([
    import('../../store/connection.js'),
    import('../../store/jobs/renew.js'),
  ]);
  const database = await open({
    source: input.source,
    poolSize: 2,
    socketTimeout: renewalTimeout(input.lockTimeout),
    timeout,
    clock,
  });
  try {
    const databaseClock = new DatabaseClock(database);
    await databaseClock.synchronize();
    clock.anchor = databaseClock.anchor;
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    renew: (leases: readonly Lease[], now: Date) => renew(database.collections, leases, now),
    close: () => database.close(),
  };
}

async function main(): Promise<void> {
  if (input.shortestLease < CONNECT_AHEAD_MS) await connectOnce(input.connectTimeout);
  const events = new EventBus('worker');
  events.on('worker:error', ({ error, failures, retryIn }) => {
    const { message, code } = error as Error & { code?: unknown };
    send({ kind: 'error', message, code, failures, retryIn });
  });
  events.on('worker:recovered', ({ failures }) => send({ kind: 'recovered', failures }));
  const leases = new SharedLeases(input.tables);
  // One connection attempt must not take as long as the locks are still valid.
  const connectTimeout = Math.min(input.connectTimeout, Math.max(1000, input.lockTimeout / 6));
  const loop = new RenewalLoop({
    clock,
    events,
    leases: () => leases.current(),
    // The clock offset is measured while connecting, so the time is read after that.
    renew: async (due) => (await connectOnce(connectTimeout)).renew(due, clock.now()),
    report: {
      renewed: (renewed, sentAt) => send({ kind: 'renewed', slots: leases.slotsOf(renewed), sentAt }),
      lost: (lost) => send({ kind: 'lost', slots: leases.slotsOf(lost) }),
    },
  });

  async function stop(): Promise<void> {
    await loop.stop();
    await (await connected?.catch(() => undefined))?.close();
    port.close();
  }

  port.on('message', (message: ToThread) => {
    switch (message.kind) {
      case 'grow':
        return leases.grow(message.table);
      case 'shortestLease':
        if (message.length < CONNECT_AHEAD_MS) connectOnce(connectTimeout).catch(() => undefined);
        return loop.expectLeasesOf(message.length);
      case 'heartbeat':
        clock.anchor = message.clock;
        return loop.heartbeat();
      case 'stop':
        void stop();
    }
  });
  loop.expectLeasesOf(input.shortestLease);
  loop.start();
  send({ kind: 'ready' });
}

main().catch((error: unknown) => {
  send({ kind: 'unreachable', message: toError(error).message });
  port.close();
});
