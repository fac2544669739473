import { workerData } from 'node:worker_threads';
import { LeaseTable } from '../../src/worker/locks/lease-table.js';

/** A thread that keeps writing ids and tokens of one repeated letter into slot 0 until `ended` is set. */
const { memory, ended } = workerData as { memory: SharedArrayBuffer; ended: Int32Array };
const table = new LeaseTable(memory);
const shared = { kind: 'job', length: 1, renewedAt: 1, renewUntil: 1, prefetched: false } as const;
for (let turn = 0; Atomics.load(ended, 0) === 0; turn++) {
  const letter = 'abcdefgh'.charAt(turn % 8);
  table.write(0, { ...shared, id: letter.repeat(600), token: letter.repeat(36) });
  // Sometimes pauses long enough for a complete read.
  for (const until = performance.now() + (turn % 4) / 100; performance.now() < until;);
}
