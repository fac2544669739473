import assert from 'node:assert/strict';
import { groupBy } from '../../../src/domain/language.js';

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
