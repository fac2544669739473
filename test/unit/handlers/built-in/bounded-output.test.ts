import assert from 'node:assert/strict';
import { BoundedOutput } from '../../../../src/handlers/built-in/bounded-output.js';

function outputOf(...chunks: (string | Buffer)[]): BoundedOutput {
  const output = new BoundedOutput();
  for (const chunk of chunks) output.add(Buffer.from(chunk));
  return output;
}

describe('BoundedOutput [D2]', () => {
  const limit = 64 * 1024;

  it('returns all of a short output', () => {
    const { text, end, total, dropped } = outputOf('one\n', 'two\n');
    assert.deepEqual(
      { text, end, total, dropped },
      { text: 'one\ntwo\n', end: 'one\ntwo', total: 8, dropped: 0 },
    );
  });

  it('is empty at first', () => {
    const { text, end, total, dropped } = outputOf();
    assert.deepEqual({ text, end, total, dropped }, { text: '', end: '', total: 0, dropped: 0 });
  });

  it('is not truncated at exactly the limit', () => {
    const output = outputOf('a'.repeat(limit - 1), 'b');
    assert.equal(output.dropped, 0);
    assert.ok(output.text.endsWith('ab'));
    output.add(Buffer.from('c'));
    assert.equal(output.dropped, 1);
    assert.equal(output.text.length, limit);
  });

  it('joins characters that arrive in parts and omits an incomplete one at the limit', () => {
    const [a, b] = [Buffer.from('ü').subarray(0, 1), Buffer.from('ü').subarray(1)];
    assert.equal(outputOf(a, b).text, 'ü');
    const output = outputOf('x'.repeat(limit - 1), a, b);
    assert.equal(output.text, 'x'.repeat(limit - 1));
  });

  it('accepts a gigabyte and keeps both ends', () => {
    const chunk = Buffer.alloc(1024 * 1024, 'line\n');
    const output = new BoundedOutput();
    output.add(Buffer.from('first\n'));
    for (let i = 0; i < 1024; i++) output.add(chunk);
    output.add(Buffer.from('\nlast\n'));
    assert.equal(output.total, 2 ** 30 + 12);
    assert.ok(output.text.startsWith('first\nline\n'));
    assert.match(output.end, /^… line\n[^]*\nlast$/);
    assert.ok(output.end.length <= 2050);
  });

  it('shows the end of one long line without half a character', () => {
    const { end } = outputOf(`x${'ü'.repeat(3000)}`);
    assert.match(end, /^… ü+$/);
  });
});
