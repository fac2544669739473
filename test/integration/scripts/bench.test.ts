import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findBinary } from '@chronos/mongod';
import type { Figure } from '../../../scripts/bench/figures.js';

const run = promisify(execFile);

/** Checks that the benchmark produces results, not how good they are. The benchmark itself checks that each job ran once. */
describe('npm run bench', () => {
  let folder: string;
  before(async () => (folder = await mkdtemp(join(tmpdir(), 'chronos-bench-'))));
  after(() => rm(folder, { recursive: true }));

  it('shows its results next to their baselines, as a table, as JSON and as a plot [B3]', async () => {
    const [json, svg] = [join(folder, 'figures.json'), join(folder, 'figures.svg')];
    const parts = ['--quick', '--only', 'noop,latency,sharded', '--json', json, '--svg', svg];
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'scripts/bench/main.ts', ...parts]);
    const figures = JSON.parse(await readFile(json, 'utf8')) as Figure[];
    const ids = figures.map(({ id }) => id);
    const hasMongos = (await findBinary('mongos')) !== undefined;
    const expected = ['noop-100', 'noop-5', 'enqueue-bulk', 'latency-idle-p50'];
    for (const id of [...expected, ...(hasMongos ? ['sharded'] : [])]) assert.ok(ids.includes(id), id);
    for (const { id, what, value, floor, ratio } of figures) {
      assert.ok(value > 0 && Number.isFinite(value), `${id}: ${value}`);
      assert.ok(floor !== null && floor > 0 && ratio === value / floor, `${id}: floor ${String(floor)}`);
      assert.ok(stdout.includes(`| ${what} `), `${id} is not in the table`);
    }
    assert.match(await readFile(svg, 'utf8'), /^<svg [^]*no-op jobs, concurrency 100[^]*<\/svg>\n$/);
  }).timeout(120_000);

  it('rejects unknown parts of the benchmark', async () => {
    const wrong = run(process.execPath, ['--import', 'tsx', 'scripts/bench/main.ts', '--only', 'speed']);
    await assert.rejects(wrong, /--only must name parts of the benchmark \(noop, .*\), got 'speed'/);
  });
});
