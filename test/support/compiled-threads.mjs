// Compiles the TypeScript entry of each worker thread once and starts it without a loader. The loader would cost every
// scheduler of every test a quarter of a second.
import { rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import { fileURLToPath, URL } from 'node:url';
import threads from 'node:worker_threads';
import { buildSync } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
// Inside the project, so that the compiled files find its packages.
const compiled = path.join(root, 'node_modules', '.cache', 'chronos-threads', String(process.pid));
const entries = new Map();

function compile(source) {
  const folder = path.join(compiled, String(entries.size));
  buildSync({
    entryPoints: [source],
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'inline',
  });
  return path.join(folder, `${path.basename(source, '.ts')}.mjs`);
}

class CompiledWorker extends threads.Worker {
  constructor(entry, options) {
    const source = entry instanceof URL ? fileURLToPath(entry) : entry;
    if (source.endsWith('.ts') && !entries.has(source)) entries.set(source, compile(source));
    super(entries.get(source) ?? entry, { ...options, execArgv: ['--enable-source-maps'] });
    // A thread that dies of an unhandled rejection is replaced, so that otherwise no test would notice.
    this.on('error', (error) => void Promise.reject(error));
  }
}

if (threads.isMainThread) {
  threads.Worker = CompiledWorker;
  syncBuiltinESMExports();
  process.on('exit', () => rmSync(compiled, { recursive: true, force: true }));
}
