/** Characters that take two cells of a terminal: East Asian scripts, wide forms, pictographs. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
/** They take none. */
const MARK = /[\p{M}\u200c\u200d]/u;

/** How many cells of a terminal the text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += cellsOf(character);
  return width;
}

/** The text in at most `width` cells, with `…` at its end where it was cut. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let used = 0;
  let kept = '';
  for (const character of text) {
    used += cellsOf(character);
    if (used > width - 1) break;
    kept += character;
  }
  return width < 1 ? '' : `${kept}…`;
}

function cellsOf(character: string): number {
  return MARK.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
}
