// `npm test`: runs the test files in a few processes side by side. The last line of the output is `N passed, N failed`.
//
//   npm test -- [files and folders] [--grep TEXT] [--forbid-only] [--jobs N]
//
// Each process has its own mongod and runs one file at a time, so a test may change the whole server: fail points,
// server parameters, currentOp.
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { RUN_ALONE, START_FIRST } from './order.js';
import { type FileResult, ROOT, TestProcess } from './test-process.js';

const FOLDERS = ['test/integration', 'test/unit', 'test/types'];
/** More than the cores of a small machine, because most tests wait: for a timer or for MongoDB. */
const DEFAULT_JOBS = '4';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    grep: { type: 'string', short: 'g' },
    'forbid-only': { type: 'boolean', default: false },
    jobs: { type: 'string', short: 'j', default: DEFAULT_JOBS },
  },
});
// Files that share one server would disturb each other.
const jobs = process.env['MONGODB_URI'] ? 1 : Number(options.jobs);

const files = findTestFiles(positionals.length > 0 ? positionals : FOLDERS);
const results: FileResult[] = [];
await runFiles(
  files.filter((file) => !RUN_ALONE.includes(file)),
  jobs,
);
await runFiles(
  files.filter((file) => RUN_ALONE.includes(file)),
  1,
);
summarize();

function findTestFiles(places: readonly string[]): string[] {
  const found = places.flatMap((place) => {
    const absolute = path.resolve(place);
    const names = statSync(absolute).isDirectory()
      ? readdirSync(absolute, { recursive: true, encoding: 'utf8' }).filter((name) =>
          name.endsWith('.test.ts'),
        )
      : [''];
    return names.map((name) => path.relative(ROOT, path.join(absolute, name)).split(path.sep).join('/'));
  });
  const rank = (file: string): number => START_FIRST.indexOf(file) + 1 || Infinity;
  return [...new Set(found)].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** Every process takes the next file of the queue when it has finished one. */
async function runFiles(queue: string[], processes: number): Promise<void> {
  const count = Math.min(processes, queue.length);
  await Promise.all(Array.from({ length: count }, () => drain(queue)));
}

async function drain(queue: string[]): Promise<void> {
  while (queue.length > 0) {
    const testProcess = new TestProcess({ grep: options.grep, forbidOnly: options['forbid-only'] });
    while (queue.length > 0 && !testProcess.hasExited) record(await testProcess.run(queue.shift()!));
    const leftOpen = await testProcess.end();
    if (leftOpen !== null) record(leftOpen);
  }
}

function record(result: FileResult): void {
  results.push(result);
  const { file, passed, failed, ms, cpuMs, output } = result;
  const seconds = (duration: number): string => `${(duration / 1000).toFixed(1)} s`;
  if (failed > 0) console.log(`\n${output.trimEnd()}\n`);
  const counts = failed > 0 ? `${passed} passed, ${failed} FAILED` : `${passed} passed`;
  console.log(`${failed > 0 ? '✗' : '✓'} ${file} (${counts}, ${seconds(ms)}, CPU ${seconds(cpuMs)})`);
}

function summarize(): void {
  const sum = (count: (result: FileResult) => number): number =>
    results.reduce((total, result) => total + count(result), 0);
  const failed = sum((result) => result.failed);
  const pending = sum((result) => result.pending);
  for (const { file, failures } of results)
    for (const title of failures) console.log(`failed: ${file}: ${title}`);
  process.exitCode = failed === 0 ? 0 : 1;
  console.log(
    `${sum(({ passed }) => passed)} passed, ${failed} failed${pending > 0 ? `, ${pending} skipped` : ''}`,
  );
}
