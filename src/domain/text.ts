import { tryOr } from './language.js';

const MARK = '… (cut)';
/** Copying or serializing stops here: objects that share their parts can expand to billions of values. */
export const MAX_VALUES = 1_000_000;

/** Shortens the text to at most `bytes` bytes of UTF-8, with a mark at the end. Replaces lone surrogates. */
export function truncateUtf8(text: string, bytes: number): string {
  const wellFormed = text.toWellFormed();
  if (wellFormed.length * 3 <= bytes || Buffer.byteLength(wellFormed) <= bytes) return wellFormed;
  const room = bytes - Buffer.byteLength(MARK);
  // A character that is cut in half decodes to U+FFFD; drop it.
  return (
    Buffer.from(wellFormed.slice(0, room))
      .subarray(0, room)
      .toString()
      .replace(/\uFFFD+$/, '') + MARK
  );
}

/** The JSON of any value, or the name of its type if it has none. Never throws, even if a getter does. */
export function jsonText(value: unknown): string {
  let left = MAX_VALUES;
  try {
    const json = JSON.stringify(value, (_, inner: unknown) => {
      if (--left < 0) throw new RangeError('too many values');
      return inner;
    });
    return json ?? String(value);
  } catch {
    return tryOr(() => Object.prototype.toString.call(value), 'a value that cannot be shown');
  }
}

/**
 * Characters of stored data that must not reach a terminal: control characters (C0, DEL, C1), which can move the cursor,
 * rename the window or send input; line separators; marks that change the direction of text; invisible characters that
 * make different names appear equal.
 */
const UNSAFE =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** The text with unsafe characters escaped: `\n`, `\x1b`, `\u202e`. Idempotent. */
export function printable(text: string): string {
  return text.toWellFormed().replace(UNSAFE, escaped);
}

/** JSON that is safe to show in a terminal and parses to the same value. `indent` 0 puts it on one line. */
export function printableJson(value: unknown, indent = 2): string {
  return escapedJson(JSON.stringify(value, withBigInts, indent) ?? 'null');
}

/** Makes JSON safe to show in a terminal. */
export function escapedJson(json: string): string {
  // Line breaks in strings are escaped already; the others belong to the JSON.
  return json.replace(UNSAFE, (character) => (character === '\n' ? character : jsonEscape(character)));
}

function escaped(character: string): string {
  if ('\n\r\t'.includes(character)) return JSON.stringify(character).slice(1, -1);
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${hex(code, 2)}` : code > 0xffff ? `\\u{${hex(code, 1)}}` : `\\u${hex(code, 4)}`;
}

function jsonEscape(character: string): string {
  const units = character.split('').map((unit) => unit.charCodeAt(0));
  return units.map((unit) => `\\u${hex(unit, 4)}`).join('');
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}

function withBigInts(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
