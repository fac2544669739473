// npm run chaos: worker processes are killed and frozen at random while schedules run every second; then everything
// they left behind is compared with the calendar. Exits with 1 if anything is missing, duplicated, or violates an invariant.
import { parseArgs } from 'node:util';
import { startMongod } from '@chronos/mongod';
import type { ChaosReport } from './check.js';
import { runChaos } from './run.js';

const MAX_SHOWN = 30;

function readNumber(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1) return value;
  throw new Error(`--${name} must be an integer of at least 1, got '${text}'`);
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

function show({ violations, faults, skips, latency, problems, ...counts }: ChaosReport): void {
  const { p50, p99, max } = latency;
  console.table({
    'processes started': faults.starts,
    'killed (SIGKILL)': faults.kills,
    'frozen (SIGSTOP, SIGCONT)': faults.freezes,
    'stopped (SIGTERM)': faults.stops,
    'jobs created': counts.jobs,
    'jobs completed': counts.completed,
    'jobs failed after three crashes': counts.failed,
    'handlers started': counts.starts,
    'crashes counted': counts.crashes,
    ...Object.fromEntries(Object.entries(skips).map(([reason, count]) => [`skipped: ${reason}`, count])),
    'plans lost to another process': counts.contended,
    'from due to started, p50, ms': Math.round(p50),
    'from due to started, p99, ms': Math.round(p99),
    'from due to started, max, ms': Math.round(max),
    violations: violations.length,
  });
  for (const [problem, times] of problems) console.log(`${times} × ${problem}`);
  for (const violation of violations.slice(0, MAX_SHOWN)) console.log(violation);
  if (violations.length > MAX_SHOWN) console.log(`… and ${violations.length - MAX_SHOWN} more`);
}

const { seed, ...options } = readOptions();
const { processes, schedules, seconds } = options;
console.log(
  `${processes} processes, ${schedules} schedules, ${seconds} s, seed ${seed} (repeat with --seed ${seed})`,
);
const mongod = await startMongod({ log: console.log });
try {
  const uri = new URL(mongod.uri);
  uri.pathname = '/chaos';
  const report = await runChaos({ uri: uri.href, ...options, seed, log: console.log });
  show(report);
  if (report.violations.length === 0) console.log('No violations: jobs and skips match the calendar.');
  else process.exitCode = 1;
} finally {
  await mongod.stop();
}
