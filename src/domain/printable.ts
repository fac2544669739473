/**
 * What must never reach a terminal from stored data: control characters (C0, DEL, C1), with which text could move the
 * cursor, rename the window or answer for the person; separators of lines; marks that change the direction of what is
 * written around them; invisible ones that make two names look the same.
 */
const UNSAFE =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

const SHORT = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

/** The text with everything unsafe written out: `\n`, `\x1b`, `\u202e`. Doing it twice changes nothing. */
export function printable(text: string): string {
  return text.toWellFormed().replace(UNSAFE, (character) => SHORT.get(character) ?? escaped(character));
}

/** JSON that a terminal may show: the same value when it is read again. `indent` 0 puts it on one line. */
export function printableJson(value: unknown, indent = 2): string {
  return escapedJson(JSON.stringify(value, withBigInts, indent) ?? 'null');
}

/** The same for what is JSON already. */
export function escapedJson(json: string): string {
  // Line breaks of the JSON itself are not in strings, where they are escaped already.
  return json.replace(UNSAFE, (character) => (character === '\n' ? character : jsonEscape(character)));
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${hex(code, 2)}` : code > 0xffff ? `\\u{${hex(code, 1)}}` : `\\u${hex(code, 4)}`;
}

function jsonEscape(character: string): string {
  return [...Array(character.length).keys()].map((i) => `\\u${hex(character.charCodeAt(i), 4)}`).join('');
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}

function withBigInts(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
