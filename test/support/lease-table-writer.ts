import { workerData } from 'node:worker_threads';
import { LeaseTable } from '../../src/worker/locks/lease-table.js';

/** A thread that writes ids and tokens of one letter each into a slot, over and over, until it is told to end. */
const { memory, ended } = workerData as { memory: SharedArrayBuffer; ended: Int32Array };
const table = new LeaseTable(memory);
const equal = { kind: 'job', length: 1, renewedAt: 1, renewUntil: 1, prefetched: false } as const;
for (let turn = 0; Atomics.load(ended, 0) === 0; turn++) {
  const letter = 'abcdefgh'.charAt(turn % 8);
  table.write(0, { ...equal, id: letter.repeat(600), token: letter.repeat(36) });
  // Now and then long enough for a whole look.
  for (const until = performance.now() + (turn % 4) / 100; performance.now() < until;);
}
