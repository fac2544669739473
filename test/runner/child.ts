// A test process: runs each file that it is sent, and ends when its parent disconnects.
import Mocha from 'mocha';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/mongod.js';
import type { FileCounts, FileMessage, TestOptions } from './test-process.js';

const TEST_TIMEOUT_MS = 90_000;
/** How long the process may take to exit after its last file. */
const CLOSE_TIMEOUT_MS = 10_000;

const { grep, forbidOnly } = JSON.parse(process.argv[2] ?? '{}') as TestOptions;

const ready = mochaGlobalSetup();
process.on('message', (file: string) => void runAndReport(file));
process.on('disconnect', () => void end());

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
    runner.on('fail', (test) => {
      counts.failed++;
      counts.failures.push(test.fullTitle());
    });
  });
  return counts;
}

async function end(): Promise<void> {
  await ready;
  await mochaGlobalTeardown();
  // If a test left something open, the process does not exit by itself: report that as a failure.
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(', ');
    console.error(`The tests have ended, but the process does not exit. Still open: ${open}`);
    process.exit(1);
  }, CLOSE_TIMEOUT_MS).unref();
}
