// npm run bench: what Chronos does on this machine, each figure beside its floor, measured in the same run.
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { startMongod } from '@chronos/mongod';
import { Bench, PART_IDS } from './bench.js';
import { isReached, type Figure } from './figures.js';
import { plot } from './plot.js';
import { table } from './table.js';

const HELP = `npm run bench -- [options]

  --only a,b     only these parts: ${PART_IDS.join(', ')}
  --runs N       how often each is measured; the median counts (3)
  --quick        a fiftieth of the jobs, once: to see that it works, not for figures
  --check        exit with 1 when a target is missed
  --json FILE    the figures for machines
  --svg FILE     a plot of them
`;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    runs: { type: 'string', default: '3' },
    quick: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    json: { type: 'string' },
    svg: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

function readOptions(): { only: string[]; runs: number; scale: number } {
  const only = values.only.split(',').filter(Boolean);
  const unknown = only.find((id) => !PART_IDS.includes(id));
  if (unknown !== undefined)
    throw new Error(`--only takes parts of the benchmark (${PART_IDS.join(', ')}), got '${unknown}'`);
  const runs = Number(values.runs);
  if (!Number.isInteger(runs) || runs < 1)
    throw new Error(`--runs takes a whole number from 1, got '${values.runs}'`);
  return values.quick ? { only, runs: 1, scale: 0.02 } : { only, runs, scale: 1 };
}

async function main(): Promise<Figure[]> {
  const mongod = await startMongod({ log: console.log });
  const bench = await Bench.open({ uri: mongod.uri, ...readOptions(), log: console.log });
  try {
    return await bench.run();
  } finally {
    await bench.close();
    await mongod.stop();
  }
}

if (values.help) console.log(HELP);
else {
  const figures = await main();
  console.log(table(figures));
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(figures, null, 2)}\n`);
  if (values.svg !== undefined) await writeFile(values.svg, plot(figures));
  const missed = figures.filter((figure) => isReached(figure) === false);
  for (const { what } of missed) console.log(`missed: ${what}`);
  if (values.check && missed.length > 0) process.exitCode = 1;
}
