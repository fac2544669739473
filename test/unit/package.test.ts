import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { read } from '../support/deploy-files.js';

interface Package {
  exports: Record<string, Record<string, string>>;
  bin: Record<string, string>;
  scripts: Record<string, string>;
}

const ROOT = new URL('../..', import.meta.url);

describe('the package', () => {
  const described = JSON.parse(read('package.json')) as Package;

  it('contains what it exports and runs, and nothing else', () => {
    const answer = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'ignore'],
    }).toString();
    const [pack] = JSON.parse(answer) as { files: { path: string }[] }[];
    const paths = pack?.files.map(({ path }) => path) ?? [];
    const wanted = [
      ...Object.values(described.exports).flatMap((targets) => Object.values(targets)),
      ...Object.values(described.bin),
    ];
    for (const path of wanted)
      assert.ok(paths.includes(path.replace(/^\.\//, '')), `${path} is in the package`);
    const others = paths.filter((path) => !path.startsWith('dist/src/'));
    assert.deepEqual(others.sort(), ['README.md', 'dist/worker.d.ts', 'dist/worker.js', 'package.json']);
  });

  it('is compiled before it is packed, also in a fresh clone', () => {
    assert.match(described.scripts['prepack'] ?? '', /prepare\.mjs --build/);
  });

  it('has no overrides, which do not apply for those who install it', () => {
    assert.ok(!('overrides' in described));
  });
});
