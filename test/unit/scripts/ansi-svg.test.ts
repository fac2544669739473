import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { toSvg } from '../../../scripts/docs/ansi-svg.js';

describe('terminal screenshots', () => {
  it('show the last frame in its colors', () => {
    const output =
      '\u001b[?1049h\u001b[Hold\u001b[K\u001b[J\u001b[H<a> \u001b[31mred\u001b[0m & on\u001b[K\r\nend\u001b[K\u001b[J\u001b[?1049l';
    const svg = toSvg(output, 40, 'top');
    assert.ok(svg.includes('&lt;a&gt; <tspan fill="#ff7b72">red</tspan> &amp; on</text>'));
    assert.ok(svg.includes('>end</text>'));
    assert.ok(!svg.includes('old') && !svg.includes('\u001b'));
  });

  it('exist in the docs and are small', async () => {
    for (const name of ['status', 'top']) {
      const { size } = await stat(new URL(`../../../docs/${name}.svg`, import.meta.url));
      assert.ok(size > 1000 && size < 60_000, `${name}: ${size}`);
    }
  });
});
