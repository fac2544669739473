import assert from 'node:assert/strict';
import { fitLine, wrap, paint, styled } from '../../../../src/cli/terminal/styled.js';

describe('styled lines', () => {
  it('are truncated to a width across their parts', () => {
    const line = ['abc', styled('red', 'def'), 'ghi'];
    assert.equal(paint(fitLine(line, 9), false), 'abcdefghi');
    assert.equal(paint(fitLine(line, 5), false), 'abcd…');
    assert.equal(paint(fitLine('\u001b[2J', 4), false), '\\x1…');
  });

  it('wrap into as many lines as they need', () => {
    const pieces = [['aa'], ['bb', 'b'], ['cc'], ['dd']];
    const wrapped = (width: number): string[] => wrap(pieces, '  ', width).map((line) => paint(line, false));
    assert.deepEqual(wrapped(80), ['aa  bbb  cc  dd']);
    assert.deepEqual(wrapped(8), ['aa  bbb', 'cc  dd']);
    assert.deepEqual(wrapped(1), ['aa', 'bbb', 'cc', 'dd']);
    assert.deepEqual(wrap([], '  ', 80), []);
  });
});
