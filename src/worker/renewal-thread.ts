import { workerData, type MessagePort } from 'node:worker_threads';
import { toError } from '../domain/errors.js';
import { DatabaseClock } from '../runtime/database-clock.js';
import { EventBus } from '../runtime/event-bus.js';
import type { Lease } from '../store/renew.js';
import { SharedLeases } from './lease-table.js';
import { RenewalLoop } from './renewal-loop.js';
import type { FromThread, ThreadInput, ToThread } from './thread-messages.js';

// The renewal thread: a connection pool and a loop of its own, over leases that the main thread writes into shared memory.
const { port, input } = workerData as { port: MessagePort; input: ThreadInput };

/** Locks shorter than this leave no time to connect when the first one is to be renewed. Milliseconds. */
const CONNECT_AHEAD = 15_000;

interface Connected {
  renew: (leases: readonly Lease[], now: Date) => Promise<Lease[]>;
  close: () => Promise<void>;
}

const tell = (message: FromThread): void => {
  port.postMessage(message);
};

const clock = new DatabaseClock();
let connected: Promise<Connected> | undefined;

/** Loads the driver, too: a worker whose jobs are all short never pays for either. */
async function connectOnce(timeout: number): Promise<Connected> {
  connected ??= connect(timeout);
  connected.catch(() => (connected = undefined));
  return connected;
}

async function connect(timeout: number): Promise<Connected> {
  const store = await Promise.all([import('../store/connection.js'), import('../store/renew.js')]);
  const [{ connect: open }, { renew }] = store;
  const database = await open({
    uri: input.uri,
    poolSize: 2,
    socketTimeout: Math.min(5000, Math.max(1000, input.lockTimeout / 6)),
    timeout,
    clock,
  });
  try {
    await clock.synchronise(database.readServerTime);
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    renew: (leases, now) => renew(database.collections, leases, now),
    close: () => database.close(),
  };
}

async function main(): Promise<void> {
  if (input.shortest < CONNECT_AHEAD) await connectOnce(input.connectTimeout);
  const events = new EventBus();
  events.on('worker:trouble', ({ error, failures, retryIn }) => {
    tell({ kind: 'trouble', message: error.message, failures, retryIn });
  });
  events.on('worker:recovered', ({ failures }) => tell({ kind: 'recovered', failures }));
  const leases = new SharedLeases(input.tables);
  // One try must not use up the time that the locks have left.
  const patience = Math.min(input.connectTimeout, Math.max(1000, input.lockTimeout / 6));
  const loop = new RenewalLoop({
    clock,
    events,
    leases: () => leases.current(),
    // The time after connecting: before that the clock may never have been measured.
    renew: async (due) => (await connectOnce(patience)).renew(due, clock.now()),
    report: {
      renewed: (renewed, sentAt) => {
        tell({ kind: 'renewed', slots: leases.slotsOf(renewed), sentAt });
      },
      lost: (lost) => {
        tell({ kind: 'lost', slots: leases.slotsOf(lost) });
      },
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
        leases.grow(message.table);
        return;
      case 'shorter':
        if (message.length < CONNECT_AHEAD) connectOnce(patience).catch(() => undefined);
        loop.lookFor(message.length);
        return;
      case 'beat':
        if (message.anchor !== undefined) clock.anchor = message.anchor;
        loop.beat();
        return;
      case 'stop':
        void stop();
    }
  });
  loop.lookFor(input.shortest);
  loop.start();
  tell({ kind: 'ready' });
}

main().catch((error: unknown) => {
  tell({ kind: 'unreachable', message: toError(error).message });
  port.close();
});
