import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../domain/clock.js';
import { ChronosError } from '../../domain/errors.js';
import { EXIT } from '../../process/exit.js';
import { option } from '../arguments.js';
import type { CommandSpec } from '../command.js';
import type { Context } from '../context.js';
import { styled } from '../terminal/styled.js';
import { WORK_OPTIONS } from './work.js';

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url));
const POLL_MS = 200;
const MAX_FOLDERS = 500;
const SOURCE = /\.([cm]?[jt]sx?|json)$/;

export const dev: CommandSpec = {
  name: 'dev',
  summary: 'Run a worker, and restart it when a source file in the folder of the handlers changes',
  options: [...WORK_OPTIONS, option('--watch <folder>', 'watch this folder instead')],
  examples: ['dev --handlers ./my-handlers.js', 'dev --handlers dist/handlers.js --watch dist'],
  async run(context) {
    const { args, clock, signal, err } = context;
    const { handlers } = context.settings();
    if (handlers === undefined)
      throw new ChronosError(
        'INVALID_ENVIRONMENT',
        'dev needs a module to watch: name it with --handlers or HANDLERS',
      );
    return restartOnChange({
      signal,
      watcher: openWatcher(resolve(args.text('watch') ?? dirname(handlers)), clock),
      start: () => startWorker(context, handlers),
      print: (line) => err.lines(styled('cyan', line)),
    });
  },
};

function openWatcher(folder: string, clock: Clock): SourceWatcher {
  try {
    return new SourceWatcher(folder, clock);
  } catch (error) {
    throw new ChronosError('INVALID_ARGUMENT', `${folder} cannot be watched: ${(error as Error).message}`);
  }
}

function startWorker({ args }: Context, handlers: string): ChildProcess {
  const flags = { '--queues': 'queues', '--concurrency': 'concurrency', '--uri-file': 'uriFile' };
  const options = Object.entries(args.pickAs(flags)).flatMap(([flag, value]) => [flag, String(value)]);
  const json = args.flag('json') ? ['--json'] : [];
  const command = [...process.execArgv, MAIN, 'work', '--handlers', handlers, ...options, ...json];
  return spawn(process.execPath, command, { stdio: 'inherit' });
}

interface RestartOptions {
  start: () => ChildProcess;
  watcher: Pick<SourceWatcher, 'next'>;
  print: (line: string) => void;
  /** Stops the worker, then the loop. */
  signal: AbortSignal;
}

/**
 * Keeps one worker process running and replaces it after every change. The old one stops gracefully first, so its jobs
 * can finish. A worker that exits by itself (a syntax error, say) is started again after the next change. Resolves to
 * the exit code of the last one.
 */
async function restartOnChange({ start, watcher, print, signal }: RestartOptions): Promise<number> {
  for (;;) {
    const child = start();
    const exited = waitForExit(child);
    const changed = watcher.next(signal);
    const exitCode = await Promise.race([exited, changed.then(() => undefined)]);
    if (exitCode !== undefined && !signal.aborted)
      print(`worker exited with code ${exitCode}; waiting for a change`);
    const file = await changed;
    if (exitCode === undefined) child.kill('SIGTERM');
    if (file !== undefined) print(`${file} changed, restarting`);
    const code = await exited;
    if (signal.aborted) return code;
  }
}

function waitForExit(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(EXIT.failure));
    child.once('exit', (code) => resolve(code ?? EXIT.failure));
  });
}

/**
 * Finds changed sources by polling modification times. Unlike `fs.watch`, this keeps working when a build removes a
 * folder and creates it again. Ignores node_modules and hidden folders.
 */
export class SourceWatcher {
  readonly #root: string;
  readonly #clock: Clock;
  #times: ReadonlyMap<string, number>;

  /** Throws if the folder cannot be read. */
  constructor(folder: string, clock: Clock) {
    this.#root = folder;
    this.#clock = clock;
    readdirSync(folder);
    this.#times = readTimes(folder);
  }

  /** Waits until files have changed since the last call and stopped changing. Undefined if aborted first. */
  async next(signal: AbortSignal): Promise<string | undefined> {
    let changed: string | undefined;
    for (;;) {
      await this.#clock.sleep(POLL_MS, signal);
      if (signal.aborted) return undefined;
      const times = readTimes(this.#root);
      const difference = findDifference(this.#times, times);
      this.#times = times;
      if (difference === undefined && changed !== undefined) return basename(changed);
      changed = difference ?? changed;
    }
  }
}

function findDifference(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): string | undefined {
  return [...after.keys(), ...before.keys()].find((path) => before.get(path) !== after.get(path));
}

/** Modification times of all source files in a folder and its subfolders. */
function readTimes(root: string): Map<string, number> {
  const times = new Map<string, number>();
  const folders = [root];
  for (let index = 0; index < Math.min(folders.length, MAX_FOLDERS); index++) {
    const folder = folders[index] ?? root;
    for (const entry of readEntries(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!entry.name.startsWith('.') && entry.name !== 'node_modules') folders.push(path);
      } else if (SOURCE.test(entry.name)) {
        const time = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
        if (time !== undefined) times.set(path, time);
      }
    }
  }
  return times;
}

/** Empty if the folder was removed in the meantime. */
function readEntries(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
