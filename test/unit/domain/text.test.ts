import assert from 'node:assert/strict';
import { truncateUtf8 } from '../../../src/domain/text.js';

const bytes = (text: string): number => Buffer.byteLength(text);

describe('cutText', () => {
  it('leaves alone what fits', () => {
    for (const text of ['', 'short', 'é'.repeat(50), '😀'.repeat(25)])
      assert.equal(truncateUtf8(text, 100), text);
  });

  it('counts bytes, not characters', () => {
    assert.equal(truncateUtf8('é'.repeat(50), 100), 'é'.repeat(50));
    assert.notEqual(truncateUtf8('é'.repeat(51), 100), 'é'.repeat(51));
  });

  for (const character of ['x', 'é', '€', '😀']) {
    it(`never exceeds the limit, and never splits ${character}`, () => {
      for (let limit = 20; limit < 40; limit++) {
        const cut = truncateUtf8(character.repeat(100), limit);
        assert.ok(bytes(cut) <= limit);
        assert.match(cut, new RegExp(`^(${character})+… \\(cut\\)$`, 'u'));
        assert.ok(bytes(cut) > limit - bytes(character), 'as much as fits is kept');
      }
    });
  }

  it('replaces lone surrogates, which UTF-8 cannot hold', () => {
    assert.equal(truncateUtf8('a\ud800b', 100), 'a\ufffdb');
    assert.ok(truncateUtf8('\udc00'.repeat(100), 50).isWellFormed());
  });
});
