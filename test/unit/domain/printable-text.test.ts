import assert from 'node:assert/strict';
import fc from 'fast-check';
import { paint, styled } from '../../../src/cli/terminal/styled.js';
import { printable, printableJson } from '../../../src/domain/text.js';

/** C0, DEL, C1, separators of lines, marks of direction. */
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\u061c\ufeff]/u;

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

  it('lets nothing unsafe through for any text, and changes nothing the second time', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const shown = printable(text);
        assert.doesNotMatch(shown, UNSAFE);
        assert.equal(printable(shown), shown);
      }),
    );
  });

  it('is safe as JSON and parses to the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.constantFrom(0, 2), (value, indent) => {
        const json = printableJson(value, indent);
        assert.doesNotMatch(json.replaceAll('\n', ''), UNSAFE);
        assert.deepEqual(JSON.parse(json), JSON.parse(JSON.stringify(value)));
        if (indent === 0) assert.ok(!json.includes('\n'));
      }),
    );
    assert.equal(printableJson({ big: 10n, none: undefined }, 0), '{"big":"10"}');
    assert.equal(printableJson(undefined), 'null');
  });

  it('is the only text that styled lines contain besides their colors', () => {
    const line = [styled('red', '\u001b[2J!'), ' \u001b]8;;x\u0007'];
    assert.equal(paint(line, true), '\u001b[31m\\x1b[2J!\u001b[0m \\x1b]8;;x\\x07');
    assert.equal(paint(line, false), '\\x1b[2J! \\x1b]8;;x\\x07');
  });
});
