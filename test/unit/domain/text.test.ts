import assert from 'node:assert/strict';
import { cutText } from '../../../src/domain/text.js';

const bytes = (text: string): number => Buffer.byteLength(text);

describe('cutText', () => {
  it('leaves alone what fits', () => {
    for (const text of ['', 'short', 'é'.repeat(50), '😀'.repeat(25)]) assert.equal(cutText(text, 100), text);
  });

  it('counts bytes, not characters', () => {
    assert.equal(cutText('é'.repeat(50), 100), 'é'.repeat(50));
    assert.notEqual(cutText('é'.repeat(51), 100), 'é'.repeat(51));
  });

  for (const character of ['x', 'é', '€', '😀']) {
    it(`never exceeds the limit, and never splits ${character}`, () => {
      for (let limit = 20; limit < 40; limit++) {
        const cut = cutText(character.repeat(100), limit);
        assert.ok(bytes(cut) <= limit);
        assert.match(cut, new RegExp(`^(${character})+… \\(cut\\)$`, 'u'));
        assert.ok(bytes(cut) > limit - bytes(character), 'as much as fits is kept');
      }
    });
  }

  it('replaces lone surrogates, which UTF-8 cannot hold', () => {
    assert.equal(cutText('a\ud800b', 100), 'a\ufffdb');
    assert.ok(cutText('\udc00'.repeat(100), 50).isWellFormed());
  });
});
