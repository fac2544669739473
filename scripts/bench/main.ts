// npm run bench: measures Chronos on this machine and compares each figure with its floor, measured in the same run.
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { readOrPrintHelp } from '../read-or-print-help.js';
import { startMongod } from '@chronos/mongod';
import { Bench } from './bench.js';
import { compare } from './compare.js';
import { isReached, type Figure } from './figures.js';
import { ON_REQUEST, PART_IDS, runParts } from './parts.js';
import { runPeers } from './peers/index.js';
import { plot } from './plot.js';
import { table } from './table.js';

const HELP = `npm run bench -- [options]

  --only a,b     only these parts: ${PART_IDS.join(', ')}
                 (${ON_REQUEST.join(', ')} takes minutes and runs only if named)
  --runs N       how often each part is measured; the median is used (3)
  --quick        2% of the jobs, one run: only tests the benchmark, the figures mean nothing
  --check        exit with 1 if a target is missed
  --json FILE    write the figures as JSON
  --svg FILE     write a plot
  --peers        also measure other schedulers (npm run bench:peers)
`;

interface Options {
  only: string[];
  runs: number;
  scale: number;
  values: ReturnType<typeof readArguments>;
}

function readArguments() {
  return parseArgs({
    options: {
      only: { type: 'string', default: '' },
      runs: { type: 'string', default: '3' },
      quick: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      json: { type: 'string' },
      svg: { type: 'string' },
      peers: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  }).values;
}

function readOptions(): Options {
  const values = readArguments();
  const only = values.only.split(',').filter(Boolean);
  const unknown = only.find((id) => !PART_IDS.includes(id));
  if (unknown !== undefined)
    throw new Error(`--only must name parts of the benchmark (${PART_IDS.join(', ')}), got '${unknown}'`);
  if (values.peers && only.length > 0 && !only.includes('noop'))
    throw new Error('--peers needs the part noop: add it to --only');
  const runs = Number(values.runs);
  if (!Number.isInteger(runs) || runs < 1)
    throw new Error(`--runs must be an integer of at least 1, got '${values.runs}'`);
  return values.quick ? { only, runs: 1, scale: 0.02, values } : { only, runs, scale: 1, values };
}

async function main(options: Options): Promise<Figure[]> {
  const { values } = options;
  const mongod = await startMongod({ log: console.log });
  const bench = await Bench.open({ uri: mongod.uri, ...options, log: console.log });
  try {
    const figures = await runParts(bench, options.only);
    const noop = figures.find(({ id }) => id === 'noop-100');
    if (!values.peers || noop === undefined) return figures;
    const { runs } = options;
    const jobs = bench.jobs(20_000);
    const peers = await runPeers({ mongoUri: mongod.uri, jobs, concurrency: 100, runs, log: console.log });
    return [...figures, ...compare(noop, peers)];
  } finally {
    await bench.close();
    await mongod.stop();
  }
}

const options = readOrPrintHelp(readOptions, HELP);
if (options?.values.help === true) console.log(HELP);
else if (options !== undefined) {
  const { values } = options;
  const figures = await main(options);
  console.log(table(figures));
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(figures, null, 2)}\n`);
  if (values.svg !== undefined) await writeFile(values.svg, plot(figures));
  const missed = figures.filter((figure) => isReached(figure) === false);
  for (const { what } of missed) console.log(`missed: ${what}`);
  if (values.check && missed.length > 0) process.exitCode = 1;
}
