// `npm run fuzz -- [--times N] [--seed N]`: the fuzz tests of `npm test` with N times as many values (default 50, a few
// minutes). A failure prints the value; the same seed repeats it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    times: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
});
const { times, seed } = values;
console.log(`seed ${seed}; repeat with: npm run fuzz -- --times ${times} --seed ${seed}`);
const runner = spawn(
  process.execPath,
  ['--import', 'tsx', 'test/runner/main.ts', 'test/integration/fuzz', '--jobs', '2'],
  { stdio: 'inherit', env: { ...process.env, FUZZ_TIMES: times, FUZZ_SEED: seed } },
);
const [code] = (await once(runner, 'exit')) as [number | null];
process.exitCode = code ?? 1;
