import assert from 'node:assert/strict';
import fc from 'fast-check';
import { paint, styled } from '../../../src/cli/terminal/styled.js';
import { printable, printableJson, truncateUtf8 } from '../../../src/domain/text.js';

/** The same cases in every run. */
const SEED = { seed: 20_260_101 };
/** C0, DEL, C1, line separators, direction marks. */
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\u061c\ufeff]/u;

const bytes = (text: string): number => Buffer.byteLength(text);

describe('truncateUtf8', () => {
  it('does not change text within the limit', () => {
    for (const text of ['', 'short', 'é'.repeat(50), '😀'.repeat(25)])
      assert.equal(truncateUtf8(text, 100), text);
  });

  it('counts bytes, not characters', () => {
    assert.equal(truncateUtf8('é'.repeat(50), 100), 'é'.repeat(50));
    assert.notEqual(truncateUtf8('é'.repeat(51), 100), 'é'.repeat(51));
  });

  for (const character of ['x', 'é', '€', '😀']) {
    it(`keeps as much as fits without splitting ${character}`, () => {
      for (let limit = 20; limit < 40; limit++) {
        const cut = truncateUtf8(character.repeat(100), limit);
        assert.ok(bytes(cut) <= limit);
        assert.match(cut, new RegExp(`^(${character})+… \\(cut\\)$`, 'u'));
        assert.ok(bytes(cut) > limit - bytes(character));
      }
    });
  }

  it('replaces lone surrogates, which UTF-8 cannot represent', () => {
    assert.equal(truncateUtf8('a\ud800b', 100), 'a\ufffdb');
    assert.ok(truncateUtf8('\udc00'.repeat(100), 50).isWellFormed());
  });
});

describe('printable', () => {
  it('escapes control sequences, line breaks and direction marks, and nothing else', () => {
    assert.equal(printable('\u001b[31mred\u001b]0;title\u0007'), '\\x1b[31mred\\x1b]0;title\\x07');
    assert.equal(printable('a\r\nb\tc\u009b2J'), 'a\\r\\nb\\tc\\x9b2J');
    assert.equal(printable('txt.\u202egnp.exe\u2066'), 'txt.\\u202egnp.exe\\u2066');
    assert.equal(printable('tag \u{e0041}'), 'tag \\u{e0041}');
    assert.equal(
      printable('Grüße, 東京, 👩\u200d🚀, nim\u200cfasele'),
      'Grüße, 東京, 👩\u200d🚀, nim\u200cfasele',
    );
    assert.equal(printable('\ud800 alone'), '\ufffd alone');
  });

  it('leaves nothing unsafe in any text and does not escape twice', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const shown = printable(text);
        assert.doesNotMatch(shown, UNSAFE);
        assert.equal(printable(shown), shown);
      }),
      SEED,
    );
  });

  it('is safe in JSON, which parses to the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.constantFrom(0, 2), (value, indent) => {
        const json = printableJson(value, indent);
        assert.doesNotMatch(json.replaceAll('\n', ''), UNSAFE);
        assert.deepEqual(JSON.parse(json), JSON.parse(JSON.stringify(value)));
        if (indent === 0) assert.ok(!json.includes('\n'));
      }),
      SEED,
    );
    assert.equal(printableJson({ big: 10n, none: undefined }, 0), '{"big":"10"}');
    assert.equal(printableJson(undefined), 'null');
  });

  it('is applied to the text of styled lines, but not to their colors', () => {
    const line = [styled('red', '\u001b[2J!'), ' \u001b]8;;x\u0007'];
    assert.equal(paint(line, true), '\u001b[31m\\x1b[2J!\u001b[0m \\x1b]8;;x\\x07');
    assert.equal(paint(line, false), '\\x1b[2J! \\x1b]8;;x\\x07');
  });
});
