// npm start: a worker with the example handlers, on the MongoDB of MONGODB_URI or an embedded one.
import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { DataInUseError, EmbeddedMongodError, startMongod, type EmbeddedMongod } from '@chronos/mongod';
import { config } from 'dotenv';

const EXAMPLE_HANDLERS = 'dist/examples/schedules.js';
const DATA = path.join('.chronos', 'data');
/** On Ctrl-C, the terminal and npm both signal this process: signals this close together count as one. */
const SAME_SIGNAL_MS = 500;

process.chdir(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
config({ quiet: true });

const usesExamples = !process.env['HANDLERS'] && process.env['NODE_ENV'] !== 'production';
const handlers = usesExamples ? EXAMPLE_HANDLERS : process.env['HANDLERS'];

let child: ChildProcess | undefined;
let signalled: { signal: NodeJS.Signals; at: number } | undefined;

function stop(signal: NodeJS.Signals): void {
  const at = performance.now();
  const repeated = signalled?.signal === signal && at - signalled.at < SAME_SIGNAL_MS;
  signalled = { signal, at };
  if (!repeated) child?.kill(signal);
}

process.on('SIGINT', stop);
process.on('SIGTERM', stop);
process.on('SIGHUP', () => {
  stop('SIGTERM');
});

/** A signal to npm ends npm and its shell but is not forwarded, so this process stops when its parent changes. */
function stopWithNpm(): void {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    stop('SIGTERM');
  }, 500);
  watch.unref();
}

if (process.env['npm_lifecycle_event'] === 'start') stopWithNpm();

/** Runs a program of dist/ to its end and returns its exit code. */
function run(program: string, uri: string): Promise<number> {
  const env = { LOG_FORMAT: 'pretty', ...process.env, MONGODB_URI: uri, HANDLERS: handlers };
  // In its own process group, so that it receives Ctrl-C only from here, and once.
  child = spawn(process.execPath, [program], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  return new Promise((resolve, reject) => {
    child?.once('error', reject);
    child?.once('exit', (code, signal) => {
      child = undefined;
      resolve(signal ? exitCodeOf(signal) : (code ?? 1));
    });
  });
}

function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

function workerCommand(uri: string): string {
  return `  MONGODB_URI='${uri}' npm run worker`;
}

function announce(mongod: EmbeddedMongod): void {
  console.log(`MongoDB is listening on ${mongod.uri}, its data is in ${DATA}.`);
  console.log('To start another worker, run this in a second terminal:');
  console.log(`${workerCommand(mongod.uri)}\n`);
}

function explain(error: EmbeddedMongodError): void {
  if (!(error instanceof DataInUseError)) {
    console.error(error.message);
    return;
  }
  console.error(`Another "npm start" is running: its MongoDB, ${error.uri}, uses ${DATA}.`);
  console.error('To start another worker, run:');
  console.error(workerCommand(error.uri));
}

async function work(uri: string): Promise<number> {
  if (usesExamples && !signalled) {
    const code = await run('dist/examples/sample-jobs.js', uri);
    if (code !== 0) return code;
  }
  return signalled ? exitCodeOf(signalled.signal) : run('dist/worker.js', uri);
}

async function main(): Promise<number> {
  const uri = process.env['MONGODB_URI'];
  if (uri) return work(uri);

  const mongod = await startMongod({ dataPath: DATA, log: console.log });
  try {
    announce(mongod);
    return await work(mongod.uri);
  } finally {
    await mongod.stop();
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof EmbeddedMongodError)) throw error;
  explain(error);
  process.exitCode = 1;
}
