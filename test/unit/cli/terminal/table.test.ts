import assert from 'node:assert/strict';
import { truncate, paint, widthOf } from '../../../../src/cli/terminal/styled.js';
import { type Column, table } from '../../../../src/cli/terminal/table.js';

interface Row {
  id: string;
  note: string;
  count: number;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'id', cell: ({ id }) => id, keep: true },
  { title: 'note', cell: ({ note }) => note },
  { title: 'count', cell: ({ count }) => String(count), align: 'right' },
];

describe('table', () => {
  const render = (rows: readonly Row[], width: number): string[] =>
    table(COLUMNS, rows, width).map((line) => paint(line, false));

  it('aligns text left and numbers right, under headings', () => {
    const rows = [
      { id: 'a', note: 'short', count: 5 },
      { id: 'bcd', note: 'a longer one', count: 12_345 },
    ];
    assert.deepEqual(render(rows, Infinity), [
      'ID   NOTE          COUNT',
      'a    short             5',
      'bcd  a longer one  12345',
    ]);
  });

  it('truncates long cells with … to fit the width, ids last', () => {
    const rows = [{ id: '66b0c1d2e3f4a5b6c7d8e9f0', note: 'an error with a long explanation', count: 7 }];
    for (const width of [120, 50, 41, 30, 12]) {
      const lines = render(rows, width);
      assert.ok(
        lines.every((line) => widthOf(line) <= width),
        `${width}: ${lines.join('|')}`,
      );
    }
    assert.match(render(rows, 50)[1] ?? '', /^66b0c1d2e3f4a5b6c7d8e9f0 {2}an error with a …\s+7$/);
    assert.match(render(rows, 30)[1] ?? '', /^66b0c1d2e3f4a5… {2}an er…\s+7$/);
  });

  it('measures wide characters, combining marks and escapes like a terminal', () => {
    assert.equal(widthOf('東京'), 4);
    assert.equal(widthOf('e\u0301'), 1);
    assert.equal(truncate('東京都', 4), '東…');
    assert.equal(truncate('abc', 3), 'abc');
    assert.equal(truncate('abc', 0), '');
    const lines = render([{ id: 'x', note: '\u001b[2J', count: 1 }], 80);
    assert.equal(lines[1], 'x   \\x1b[2J      1');
  });

  it('leaves no spaces at the end of a line', () => {
    const columns: Column<Row>[] = [...COLUMNS, { title: 'last', cell: () => '' }];
    const lines = table(columns, [{ id: 'a', note: '', count: 1 }], 80).map((line) => paint(line, false));
    assert.equal(lines[1], 'a             1');
  });
});
