import { workerData, type MessagePort } from 'node:worker_threads';
import { toError } from '../domain/errors.js';
import { DatabaseClock } from '../runtime/database-clock.js';
import { EventBus } from '../runtime/event-bus.js';
import { connect } from '../store/connection.js';
import { renew } from '../store/renew.js';
import { RenewalLoop } from './renewal-loop.js';
import { unpack, type FromThread, type ThreadInput, type ToThread } from './thread-messages.js';

// The renewal thread: a connection pool and a loop of its own, told by messages which leases to keep.
const { port, input } = workerData as { port: MessagePort; input: ThreadInput };

const tell = (message: FromThread): void => {
  port.postMessage(message);
};

async function main(): Promise<void> {
  const clock = new DatabaseClock();
  const database = await connect({
    uri: input.uri,
    poolSize: 2,
    socketTimeout: Math.min(5000, Math.max(1000, input.lockTimeout / 6)),
    timeout: input.connectTimeout,
    clock,
  });
  try {
    await clock.synchronise(database.readServerTime);
  } catch (error) {
    await database.close();
    throw error;
  }
  const events = new EventBus();
  events.on('worker:trouble', ({ error, failures, retryIn }) => {
    tell({ kind: 'trouble', message: error.message, failures, retryIn });
  });
  events.on('worker:recovered', ({ failures }) => tell({ kind: 'recovered', failures }));
  const loop = new RenewalLoop(clock, events, (leases, now) => renew(database.collections, leases, now), {
    renewed: (keys, sentAt) => {
      tell({ kind: 'renewed', keys, sentAt });
    },
    lost: (keys) => {
      tell({ kind: 'lost', keys });
    },
  });

  async function stop(): Promise<void> {
    await loop.stop();
    await database.close();
    port.close();
  }

  port.on('message', (message: ToThread) => {
    switch (message.kind) {
      case 'keep':
        loop.keep(unpack(message.leases));
        return;
      case 'drop':
        loop.drop(message.keys);
        return;
      case 'beat':
        if (message.anchor !== undefined) clock.anchor = message.anchor;
        loop.beat();
        return;
      case 'stop':
        void stop();
    }
  });
  loop.start();
  tell({ kind: 'ready' });
}

main().catch((error: unknown) => {
  tell({ kind: 'unreachable', message: toError(error).message });
  port.close();
});
