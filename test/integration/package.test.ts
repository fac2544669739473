import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { cleanEnvironment, type CommandResult, ROOT } from '../support/chronos-command.js';
import { useDatabase } from '../support/database.js';

/** What test/fixtures/consumers/run-job.cjs reports. */
const EXPECTED = { status: 'COMPLETED', result: 42, health: 200, counted: true, left: [] };
/** A program that something keeps alive is killed, and the test fails. */
const EXIT_LIMIT_MS = 80_000;
/** Without a warm cache, npm downloads all dependencies. */
const INSTALL_LIMIT_MS = 240_000;

/** Tools of a consumer. Everything that the package itself needs has to come with the tarball. */
const TOOLS = ['vitest', 'typescript', '@types/node'];

async function run(
  command: string,
  args: readonly string[],
  options: { cwd: string; timeout: number; env?: Record<string, string> },
): Promise<CommandResult> {
  const child = spawn(command, args, {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
    killSignal: 'SIGKILL',
  });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = (await once(child, 'close')) as [number | null];
  const [stdout, stderr] = await output;
  return { code, stdout, stderr };
}

async function npm(args: readonly string[], cwd: string): Promise<string> {
  const { code, stdout, stderr } = await run('npm', [...args, '--loglevel=error'], {
    cwd,
    timeout: INSTALL_LIMIT_MS,
  });
  assert.equal(code, 0, `npm ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** A project in a temporary folder, with the packed package and its dependencies installed by npm. */
async function createProject(): Promise<string> {
  // The real path: Vitest compares it with the paths of modules.
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'chronos-package-')));
  // `npm test` has compiled.
  const packed = await npm(['pack', '--ignore-scripts', '--json', '--pack-destination', folder], ROOT);
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  const manifest = {
    private: true,
    type: 'module',
    dependencies: { 'chronos-worker': `file:${filename}` },
  };
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
  const flags = ['--engine-strict', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];
  await npm(['install', ...flags], folder);
  for (const tool of TOOLS) {
    const link = path.join(folder, 'node_modules', tool);
    mkdirSync(path.dirname(link), { recursive: true });
    symlinkSync(path.join(ROOT, 'node_modules', tool), link, 'junction');
  }
  cpSync(path.join(ROOT, 'test/fixtures/consumers'), folder, { recursive: true });
  return folder;
}

describe('the packed package', () => {
  const db = useDatabase();
  let project: string;

  before(async function () {
    this.timeout(INSTALL_LIMIT_MS);
    project = await createProject();
  });

  after(() => rmSync(project, { recursive: true, force: true }));

  const runNode = (...args: string[]): Promise<CommandResult> =>
    run(process.execPath, args, {
      cwd: project,
      timeout: EXIT_LIMIT_MS,
      env: cleanEnvironment({ MONGODB_URI: db.uri, EXPECTED: JSON.stringify(EXPECTED), CI: '1' }),
    });

  const compile = (...args: string[]): Promise<CommandResult> =>
    runNode(
      'node_modules/typescript/bin/tsc',
      ...['--noEmit', '--strict', '--target', 'es2022', '--types', 'node'],
      ...args,
    );

  for (const program of ['commonjs.cjs', 'esm.mjs']) {
    it(`runs a job in ${program}, which prints no warning and exits by itself`, async () => {
      const { code, stdout, stderr } = await runNode(program);
      assert.equal(stderr, '');
      assert.deepEqual(JSON.parse(stdout), EXPECTED);
      assert.equal(code, 0);
    });
  }

  it('runs a job in a Vitest project, which exits by itself', async () => {
    const { code, stdout, stderr } = await runNode('node_modules/vitest/vitest.mjs', 'run', '--no-color');
    assert.equal(stderr, '');
    assert.match(stdout, /Tests +1 passed \(1\)/);
    assert.equal(code, 0);
  });

  it('has types for ES modules and CommonJS, also if the compiler checks those of all dependencies', async () => {
    const files = ['types.ts', 'types-commonjs.cts'];
    const { code, stdout } = await compile('--module', 'nodenext', '--skipLibCheck', 'false', ...files);
    assert.equal(stdout, '');
    assert.equal(code, 0);
  });

  it('has types for bundlers', async () => {
    const resolution = ['--module', 'esnext', '--moduleResolution', 'bundler'];
    const { code, stdout } = await compile(...resolution, '--skipLibCheck', 'types.ts');
    assert.equal(stdout, '');
    assert.equal(code, 0);
  });
});
