import assert from 'node:assert/strict';
import { fitted, flowed, paint, styled } from '../../../src/cli/styled.js';

describe('styled lines', () => {
  it('are cut to a width across their parts', () => {
    const line = ['abc', styled('red', 'def'), 'ghi'];
    assert.equal(paint(fitted(line, 9), false), 'abcdefghi');
    assert.equal(paint(fitted(line, 5), false), 'abcd…');
    assert.equal(paint(fitted('\u001b[2J', 4), false), '\\x1…');
  });

  it('flow into as many lines as they need', () => {
    const pieces = [['aa'], ['bb', 'b'], ['cc'], ['dd']];
    const shown = (width: number): string[] => flowed(pieces, '  ', width).map((line) => paint(line, false));
    assert.deepEqual(shown(80), ['aa  bbb  cc  dd']);
    assert.deepEqual(shown(8), ['aa  bbb', 'cc  dd']);
    assert.deepEqual(shown(1), ['aa', 'bbb', 'cc', 'dd']);
    assert.deepEqual(flowed([], '  ', 80), []);
  });
});
