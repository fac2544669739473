import assert from 'node:assert/strict';
import { groupBy, memoize } from '../../../src/domain/language.js';

describe('memoize', () => {
  it('computes each key once, but forgets keys when there are too many', () => {
    const computed: number[] = [];
    const double = memoize((key: number) => {
      computed.push(key);
      return key * 2;
    }, 3);
    assert.deepEqual([1, 2, 3, 1, 2, 3].map(double), [2, 4, 6, 2, 4, 6]);
    assert.deepEqual(computed, [1, 2, 3]);
    assert.deepEqual([4, 1, 4].map(double), [8, 2, 8]);
    assert.deepEqual(computed, [1, 2, 3, 4, 1]);
  });
});

describe('groupBy', () => {
  it('keeps the order of the groups and of the items in a group', () => {
    const groups = groupBy(['b1', 'a1', 'b2', 'c1', 'a2'], (item) => item[0]);
    assert.deepEqual(
      [...groups],
      [
        ['b', ['b1', 'b2']],
        ['a', ['a1', 'a2']],
        ['c', ['c1']],
      ],
    );
  });

  it('returns no groups for no items', () => assert.equal(groupBy([], String).size, 0));
});
