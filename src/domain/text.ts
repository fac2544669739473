const MARK = '… (cut)';
/** A few objects that share their parts can stand for billions of values: nobody waits for their JSON. */
const MOST_VALUES = 1_000_000;

/** The text itself, or its first part, in at most `bytes` bytes of UTF-8, marked as cut. Lone surrogates are replaced. */
export function cutText(text: string, bytes: number): string {
  const whole = text.toWellFormed();
  if (whole.length * 3 <= bytes || Buffer.byteLength(whole) <= bytes) return whole;
  const room = bytes - Buffer.byteLength(MARK);
  // A cut inside a character decodes to U+FFFD at the end; drop it.
  return (
    Buffer.from(whole.slice(0, room))
      .subarray(0, room)
      .toString()
      .replace(/\uFFFD+$/, '') + MARK
  );
}

/** The JSON of anything, or a name for what has none. Never throws, whatever the value does when it is looked at. */
export function jsonText(value: unknown): string {
  let left = MOST_VALUES;
  try {
    const json = JSON.stringify(value, (_, inner: unknown) => {
      if (--left < 0) throw new RangeError('too many values');
      return inner;
    });
    return json ?? String(value);
  } catch {
    return tagOf(value);
  }
}

function tagOf(value: unknown): string {
  try {
    return Object.prototype.toString.call(value);
  } catch {
    return 'a value that cannot be shown';
  }
}
