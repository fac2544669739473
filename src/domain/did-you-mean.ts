/** Comparing takes time in proportion to the length, and a longer word is no misspelling of a name. */
const MAX_LENGTH = 100;

/** The first candidate that begins with the word, or else the closest one within a few edits. */
export function nearestWord(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > MAX_LENGTH) return undefined;
  const completion = candidates.find((candidate) => word.length > 2 && candidate.startsWith(word));
  if (completion !== undefined) return completion;
  const distances = candidates.map((candidate) => editDistance(word.toLowerCase(), candidate.toLowerCase()));
  const smallest = Math.min(...distances);
  const maxDistance = Math.max(2, Math.floor(word.length / 3));
  return smallest <= maxDistance ? candidates[distances.indexOf(smallest)] : undefined;
}

export function didYouMean(word: string, candidates: readonly string[]): string {
  const near = nearestWord(word, candidates);
  return near === undefined ? '' : ` (did you mean '${near}'?)`;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substitute));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
