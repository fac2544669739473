import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { MAX_JOB_ID_LENGTH } from '../../../../src/domain/identifiers.js';
import { LeaseTable, SharedLeases, SLOTS } from '../../../../src/worker/locks/lease-table.js';
import type { TrackedLease } from '../../../../src/worker/locks/lock-renewer.js';

function aLease(id: string, fields: Partial<TrackedLease> = {}): TrackedLease {
  const token = '0b5a3cf4-6f5c-4f0e-8d0c-6f9a5b1f0c11';
  const times = { length: 60_000, renewedAt: 1234.5, renewUntil: Infinity };
  return { kind: 'job', id, token, ...times, prefetched: false, ...fields };
}

describe('LeaseTable', () => {
  it('returns leases as they were written, with ids of any length and any characters', () => {
    const table = new LeaseTable();
    const leases = [
      aLease('a'),
      aLease('ü€😀#1', { kind: 'named', prefetched: true, renewUntil: 99 }),
      aLease('x'.repeat(MAX_JOB_ID_LENGTH)),
    ];
    for (const [slot, lease] of leases.entries()) table.write(slot, lease);
    for (const [slot, lease] of leases.entries()) assert.deepEqual(table.read(slot)?.lease, lease);
    table.write(SLOTS - 1, aLease('last'));
    assert.equal(table.read(SLOTS - 1)?.lease.id, 'last');
  });

  it('is empty in a slot that was cleared, and changes its version with every change', () => {
    const table = new LeaseTable();
    assert.equal(table.read(7), undefined);
    const first = table.write(7, aLease('a'));
    assert.equal(table.read(7)?.version, first);
    table.clear(7);
    assert.equal(table.read(7), undefined);
    assert.notEqual(table.write(7, aLease('a')), first);
  });

  it('never returns a lease that another thread has half written', async () => {
    const table = new LeaseTable();
    const ended = new Int32Array(new SharedArrayBuffer(4));
    const writer = new Worker(new URL('../../../support/lease-table-writer.ts', import.meta.url), {
      workerData: { memory: table.memory, ended },
    });
    const exit = once(writer, 'exit');
    let running = true;
    exit.finally(() => (running = false)).catch(() => undefined);
    const versions = new Set<number>();
    for (let reads = 1; running && versions.size < 2000; reads++) {
      const read = table.read(0);
      // Now and then, so that the end of the writer is noticed.
      if (read === undefined || reads % 1000 === 0) await new Promise(setImmediate);
      if (read === undefined) continue;
      versions.add(read.version);
      const { id, token } = read.lease;
      assert.equal(id, token.charAt(0).repeat(600));
      assert.equal(token, token.charAt(0).repeat(36));
    }
    Atomics.store(ended, 0, 1);
    await exit;
    assert.equal(versions.size, 2000, 'the writer ended early');
  });
});

describe('SharedLeases', () => {
  it('returns the same object and slot as long as the slot has not changed', () => {
    const tables = [new LeaseTable(), new LeaseTable()] as const;
    const version = tables[0].write(3, aLease('a'));
    const shared = new SharedLeases([tables[0].memory]);
    shared.grow(tables[1].memory);
    tables[1].write(0, aLease('b'));
    const [a, b] = shared.current();
    assert.deepEqual([a?.id, b?.id], ['a', 'b']);
    assert.ok(a !== undefined);
    assert.deepEqual(shared.slotsOf([a]), [{ slot: 3, version }]);
    assert.equal(shared.current()[0], a);
    tables[0].write(3, aLease('a', { prefetched: true }));
    tables[1].clear(0);
    assert.deepEqual(shared.current(), [aLease('a', { prefetched: true })]);
    assert.notEqual(shared.current()[0], a);
  });
});
