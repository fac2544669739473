const MARK = '… (cut)';

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
