// npm run chaos: worker processes are killed and frozen at random while schedules run every second; then everything
// they left behind is compared with the calendar. Exits with 1 when anything is missing, doubled, or against the rules.
import { parseArgs } from 'node:util';
import { startMongod } from '@chronos/mongod';
import type { ChaosReport } from './check.js';
import { runChaos } from './run.js';

const MOST_SHOWN = 30;

function readNumber(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1) return value;
  throw new Error(`--${name} takes a whole number from 1, got '${text}'`);
}

function readOptions(): { processes: number; schedules: number; seconds: number; seed: number } {
  const { values } = parseArgs({
    options: {
      processes: { type: 'string', default: '10' },
      schedules: { type: 'string', default: '200' },
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 999_999)) },
    },
  });
  return {
    processes: readNumber('processes', values.processes),
    schedules: readNumber('schedules', values.schedules),
    seconds: readNumber('seconds', values.seconds),
    seed: readNumber('seed', values.seed),
  };
}

function show({ violations, deeds, skips, latency, complaints, ...counts }: ChaosReport): void {
  const { p50, p99, most } = latency;
  console.table({
    'processes started': deeds.starts,
    'killed (SIGKILL)': deeds.kills,
    'frozen (SIGSTOP, SIGCONT)': deeds.freezes,
    'stopped (SIGTERM)': deeds.stops,
    'jobs made': counts.jobs,
    'jobs completed': counts.completed,
    'jobs failed after three crashes': counts.failed,
    'handlers started': counts.starts,
    'crashes counted': counts.crashes,
    ...Object.fromEntries(Object.entries(skips).map(([reason, count]) => [`skipped: ${reason}`, count])),
    'decisions lost to another process': counts.contended,
    'from due to started, p50, ms': Math.round(p50),
    'from due to started, p99, ms': Math.round(p99),
    'from due to started, most, ms': Math.round(most),
    violations: violations.length,
  });
  for (const [complaint, times] of complaints) console.log(`${times} × ${complaint}`);
  for (const violation of violations.slice(0, MOST_SHOWN)) console.log(violation);
  if (violations.length > MOST_SHOWN) console.log(`… and ${violations.length - MOST_SHOWN} more`);
}

const { seed, ...options } = readOptions();
const { processes, schedules, seconds } = options;
console.log(
  `${processes} processes, ${schedules} schedules, ${seconds} s, seed ${seed} (again with --seed ${seed})`,
);
const mongod = await startMongod({ log: console.log });
try {
  const uri = new URL(mongod.uri);
  uri.pathname = '/chaos';
  const report = await runChaos({ uri: uri.href, ...options, seed, log: console.log });
  show(report);
  console.log(report.violations.length === 0 ? 'The jobs and skips equal the calendar.' : 'VIOLATED');
  process.exitCode = report.violations.length === 0 ? 0 : 1;
} finally {
  await mongod.stop();
}
