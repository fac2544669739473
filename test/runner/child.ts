// A test process: runs each file that it is sent, and ends when its parent disconnects.
import { setImmediate as turn } from 'node:timers/promises';
import Mocha from 'mocha';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/mongod.js';
import type { FileCounts, FileMessage, TestOptions } from './test-process.js';

const TEST_TIMEOUT_MS = 90_000;
/** How long the process may take to exit after its last file. */
const CLOSE_TIMEOUT_MS = 10_000;
/** Of a failure in the summary. */
const MAX_ERROR_LINES = 12;

const { grep, forbidOnly } = JSON.parse(process.argv[2] ?? '{}') as TestOptions;

/** Rejections that nobody handles; Mocha ignores them. It also emits each one a second time, so they are kept by promise. */
const unhandled = new Map<Promise<unknown>, unknown>();
process.on('unhandledRejection', (reason, promise) => unhandled.set(promise, reason));

const ready = mochaGlobalSetup();
process.on('message', (file: string) => void runAndReport(file).catch(exitWithError));
process.on('disconnect', () => void end().catch(exitWithError));

/** For example, MongoDB could not be started. */
function exitWithError(error: unknown): void {
  console.error(error);
  process.exit(1);
}

async function runAndReport(file: string): Promise<void> {
  await ready;
  const before = process.cpuUsage();
  const counts = await runFile(file);
  const { user, system } = process.cpuUsage(before);
  process.send?.({ ...counts, cpuMs: (user + system) / 1000 } satisfies FileMessage);
}

async function runFile(file: string): Promise<FileCounts> {
  const mocha = new Mocha({
    timeout: TEST_TIMEOUT_MS,
    forbidOnly,
    ...(grep !== undefined && { grep }),
    reporter: 'spec',
  });
  const counts: FileCounts = { passed: 0, failed: 0, pending: 0, failures: [] };
  mocha.addFile(file);
  try {
    await mocha.loadFilesAsync();
  } catch (error) {
    console.error(error);
    return { ...counts, failed: 1, failures: ['the file cannot be loaded'] };
  }
  await new Promise<void>((resolve) => {
    const runner = mocha.run(() => resolve());
    runner.on('pass', () => counts.passed++);
    runner.on('pending', () => counts.pending++);
    runner.on('fail', (test, error: unknown) => {
      counts.failed++;
      counts.failures.push(`${test.fullTitle()}\n${describe(error)}`);
    });
  });
  for (const title of await takeUnhandled()) {
    counts.failed++;
    counts.failures.push(title);
  }
  return counts;
}

/** The first lines, indented: the summary comes last, and of a long log often only the end is kept. */
function describe(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return text
    .split('\n', MAX_ERROR_LINES)
    .map((line) => `    ${line}`)
    .join('\n');
}

/** Prints the unhandled rejections since the last call. */
async function takeUnhandled(): Promise<string[]> {
  // Node reports a rejection after the microtasks of the turn in which nobody handled it.
  await turn();
  const titles = [...unhandled.values()].map((reason) => {
    console.error('Unhandled rejection:', reason);
    return `unhandled rejection: ${String(reason).split('\n', 1).join('')}`;
  });
  unhandled.clear();
  return titles;
}

async function end(): Promise<void> {
  await ready;
  await mochaGlobalTeardown();
  process.on('exit', () => {
    for (const reason of unhandled.values()) console.error('Unhandled rejection:', reason);
    if (unhandled.size > 0) process.exitCode = 1;
  });
  // If a test left something open, the process does not exit by itself: report that as a failure.
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(', ');
    console.error(`The tests have ended, but the process does not exit. Still open: ${open}`);
    process.exit(1);
  }, CLOSE_TIMEOUT_MS).unref();
}
