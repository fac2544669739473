// Runs before the npm scripts: installs the dependencies and, with --build, compiles; each only if needed.
// With --executable, after `npm run build`: makes the CLI executable.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const inRoot = (...parts) => path.join(root, ...parts);

const installStamp = inRoot('node_modules', '.chronos-installed');
const buildStamp = inRoot('dist', '.built');
const buildInputs = ['worker.ts', 'src', 'examples', 'tsconfig.json', 'tsconfig.build.json'];

function modifiedAt(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Includes folders: deleting a file changes only its folder. */
function newestChange(file) {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(file).map((name) => newestChange(path.join(file, name))));
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (error) console.error(`${command} could not be run: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

function lockfileHash() {
  return createHash('sha256')
    .update(readFileSync(inRoot('package-lock.json')))
    .digest('hex');
}

/** True if `npm install` or `npm ci` ran after the lockfile last changed: npm writes its hidden lockfile last. */
function isInstallNewerThanLockfile() {
  return modifiedAt(inRoot('node_modules', '.package-lock.json')) >= modifiedAt(inRoot('package-lock.json'));
}

function install() {
  const hash = lockfileHash();
  // A production install has no compiler.
  const complete = existsSync(inRoot('node_modules', 'typescript'));
  if (complete && existsSync(installStamp) && readFileSync(installStamp, 'utf8') === hash) return;
  if (!complete || !isInstallNewerThanLockfile()) {
    console.log('Installing dependencies (npm ci) ...');
    // NODE_ENV=production would leave out the compiler.
    run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']);
  }
  writeFileSync(installStamp, hash);
}

/** tsc does not set the execute bit, which `npx chronos` in this folder needs. */
function makeExecutable() {
  chmodSync(inRoot('dist', 'src', 'cli', 'main.js'), 0o755);
}

function build() {
  // Read before compiling, so that a file that changes during the build is compiled next time.
  const startedAt = Date.now();
  const changedAt = Math.max(...buildInputs.map((input) => newestChange(inRoot(input))));
  if (existsSync(buildStamp) && changedAt <= Number(readFileSync(buildStamp, 'utf8'))) return;
  console.log('Compiling (tsc) ...');
  rmSync(inRoot('dist'), { recursive: true, force: true });
  run(process.execPath, [inRoot('node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.build.json']);
  mkdirSync(inRoot('dist'), { recursive: true });
  makeExecutable();
  writeFileSync(buildStamp, String(startedAt));
}

install();
if (process.argv.includes('--build')) build();
if (process.argv.includes('--executable')) makeExecutable();
