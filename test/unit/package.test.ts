import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { read } from '../support/deploy-files.js';

interface Package {
  main: string;
  types: string;
  exports: Record<string, string | Record<string, string>>;
  sideEffects: string[];
  bin: Record<string, string>;
  scripts: Record<string, string>;
}

const ROOT = new URL('../..', import.meta.url);

describe('the package', () => {
  const manifest = JSON.parse(read('package.json')) as Package;

  it('contains its exports and commands, compiled sources, and nothing else', () => {
    const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'ignore'],
    }).toString();
    const [pack] = JSON.parse(output) as { files: { path: string }[] }[];
    const paths = pack?.files.map(({ path }) => path) ?? [];
    const entryPoints = [
      manifest.main,
      manifest.types,
      ...Object.values(manifest.exports).flatMap((target) =>
        typeof target === 'string' ? target : Object.values(target),
      ),
      ...Object.values(manifest.bin),
      ...manifest.sideEffects,
    ];
    for (const path of entryPoints)
      assert.ok(paths.includes(path.replace(/^\.\//, '')), `${path} is missing`);
    const outsideSources = paths.filter((path) => !path.startsWith('dist/src/'));
    assert.deepEqual(outsideSources.sort(), [
      'README.md',
      'dist/worker.d.ts',
      'dist/worker.js',
      'package.json',
    ]);
  });

  it('is compiled before it is packed, also in a fresh clone', () => {
    assert.match(manifest.scripts['prepack'] ?? '', /prepare\.mjs --build/);
  });

  it('has no overrides, which npm ignores in dependencies', () => {
    assert.ok(!('overrides' in manifest));
  });
});
