import assert from 'node:assert/strict';
import { leaseKey, type KeptLease } from '../../../src/worker/renewer.js';
import { pack, unpack } from '../../../src/worker/thread-messages.js';

const lease = (id: string, fields: Partial<KeptLease> = {}): KeptLease => {
  const equal = {
    kind: 'job' as const,
    token: 't',
    length: 60,
    renewedAt: 1,
    renewUntil: 2,
    buffered: false,
  };
  const one = { ...equal, ...fields, id };
  return { ...one, key: leaseKey(id, one.token) };
};

describe('messages to the renewal thread', () => {
  it('hold what leases have in common once, and give back each of them', () => {
    const leases = [lease('a'), lease('b'), lease('c', { token: 'u' }), lease('d', { buffered: true })];
    const groups = pack(leases);
    assert.deepEqual(
      groups.map(({ ids }) => ids),
      [['a', 'b'], ['c'], ['d']],
    );
    assert.deepEqual(unpack(groups), leases);
  });
});
