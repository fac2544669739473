// npm run reliability: measures how long faults interrupt the work. Exits with 1 if a target is missed.
import { parseArgs } from 'node:util';
import { readOrPrintHelp } from '../read-or-print-help.js';
import { CUT_EVERY_MS, type CutsResult, findErrors, findMissedTargets, measureCuts } from './cuts.js';
import { type DocumentsResult, measureDocuments } from './documents.js';
import { type FailoverResult, type Fault, measureFailover } from './failover.js';

/** Milliseconds from the fault until every worker completes jobs again. */
const TARGETS: Record<Fault, number> = { kill: 15_000, freeze: 20_000 };
const NAMES: Record<Fault, string> = { kill: 'killed (SIGKILL)', freeze: 'frozen (SIGSTOP)' };
const FAULTS = Object.keys(TARGETS) as Fault[];

const MEASUREMENTS = ['failover', 'cuts', 'documents'] as const;

const HELP = `npm run reliability -- failover|cuts|documents [options]

  cuts           whether three workers survive that all their connections are closed every ${CUT_EVERY_MS / 1000} s
  --seconds N    for how long (180)
  documents      what malformed stored documents cost the healthy jobs around them
  failover       how long the work stops when the primary of three members is killed or frozen
  --fault NAME   only this one: ${FAULTS.join(', ')}
  --election-timeout MS
                 electionTimeoutMillis of the replica set (10000, MongoDB's default)
  --runs N       how often each fault, or the documents, are measured (5)
`;

interface Options {
  measurement: (typeof MEASUREMENTS)[number];
  seconds: number;
  faults: readonly Fault[];
  electionTimeout: number;
  runs: number;
}

function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      fault: { type: 'string' },
      'election-timeout': { type: 'string', default: '10000' },
      runs: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '180' },
    },
  });
  const measurement = MEASUREMENTS.find((name) => name === positionals.join(' '));
  if (measurement === undefined) {
    const names = MEASUREMENTS.join(', ');
    throw new Error(`expected the name of a measurement (${names}), got '${positionals.join(' ')}'`);
  }
  const readNumber = (name: 'runs' | 'election-timeout' | 'seconds'): number => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= 1) return value;
    throw new Error(`--${name} must be an integer of at least 1, got '${values[name]}'`);
  };
  const [runs, electionTimeout] = [readNumber('runs'), readNumber('election-timeout')];
  const faults = FAULTS.filter((fault) => values.fault === undefined || values.fault === fault);
  if (faults.length === 0)
    throw new Error(`--fault must be one of ${FAULTS.join(', ')}, got '${values.fault ?? ''}'`);
  return { measurement, faults, electionTimeout, runs, seconds: readNumber('seconds') };
}

const seconds = (milliseconds: number): string => (milliseconds / 1000).toFixed(1);

function row(fault: Fault, results: readonly FailoverResult[]): string {
  const range = (pick: (result: FailoverResult) => number): string => {
    const sorted = results.map(pick).sort((a, b) => a - b);
    const [first = 0, middle = 0, last = 0] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)];
    return `${seconds(middle)} (${seconds(first)} to ${seconds(last)})`;
  };
  const sum = (pick: (result: FailoverResult) => number): number =>
    results.map(pick).reduce((a, b) => a + b, 0);
  const cells = [
    NAMES[fault],
    range(({ elected }) => elected),
    range(({ writable }) => writable),
    range(({ started }) => started),
    range(({ resumed }) => resumed),
    range(({ dispatched }) => dispatched),
    `≤ ${seconds(TARGETS[fault])}`,
    sum(({ startedTwice }) => startedTwice),
    sum(({ crashes }) => crashes),
  ];
  return `| ${cells.join(' | ')} |`;
}

async function reportFailover({ faults, electionTimeout, runs }: Options): Promise<void> {
  const rows: string[] = [];
  for (const fault of faults) {
    const results: FailoverResult[] = [];
    for (let run = 1; run <= runs; run++) {
      const result = await measureFailover(fault, electionTimeout);
      results.push(result);
      const { elected, writable, started, resumed, dispatched, failedDispatches } = result;
      console.log(
        `${NAMES[fault]}, run ${run}: elected after ${seconds(elected)} s, majority writes after ${seconds(writable)} s, all workers start jobs after ${seconds(started)} s and complete them after ${seconds(resumed)} s, ` +
          `dispatch after ${seconds(dispatched)} s (${failedDispatches} failed before)`,
      );
    }
    rows.push(row(fault, results));
    const isMet = ({ resumed, startedTwice, crashes }: FailoverResult): boolean =>
      resumed <= TARGETS[fault] && startedTwice === 0 && crashes === 0;
    if (!results.every(isMet)) process.exitCode = 1;
  }
  console.log(
    '\n| primary | new primary, s | majority writes, s | jobs start, s | jobs complete, s | dispatch possible, s | target, s | started twice | crashes |',
  );
  console.log('|---|--:|--:|--:|--:|--:|--:|--:|--:|');
  for (const line of rows) console.log(line);
}

async function reportCuts({ seconds: duration }: Options): Promise<void> {
  const result: CutsResult = await measureCuts(duration * 1000);
  const cells = [
    ...[duration, result.cuts, result.completed, seconds(result.resumed), seconds(result.stopped)],
    ...[result.lost, result.startedTwice, result.crashes],
  ];
  console.log(
    '| cuts for, s | cuts | jobs completed | work resumes, s | workers stop, s | lost | started twice | crashes |',
  );
  console.log('|--:|--:|--:|--:|--:|--:|--:|--:|');
  console.log(`| ${cells.join(' | ')} |`);
  for (const missed of [...findErrors(result), ...findMissedTargets(result)]) {
    console.error(missed);
    process.exitCode = 1;
  }
}

async function reportDocuments({ runs }: Options): Promise<void> {
  console.log(
    '| malformed documents | 10,000 jobs completed after, s | jobs affected | malformed ones not ended |',
  );
  console.log('|--:|--:|--:|--:|');
  for (const withMalformed of [false, true]) {
    const results: DocumentsResult[] = [];
    for (let run = 1; run <= runs; run++) results.push(await measureDocuments(withMalformed));
    const durations = results.map(({ duration }) => duration).sort((a, b) => a - b);
    const [fastest = 0, median = 0, slowest = 0] = [durations[0], durations[runs >> 1], durations.at(-1)];
    const affected = results.reduce((sum, result) => sum + result.affected, 0);
    const notEnded = results.reduce((sum, result) => sum + result.notEnded, 0);
    const time = `${seconds(median)} (${seconds(fastest)} to ${seconds(slowest)})`;
    console.log(`| ${results[0]?.malformed ?? 0} | ${time} | ${affected} | ${notEnded} |`);
    if (affected + notEnded > 0) process.exitCode = 1;
  }
}

const options = readOrPrintHelp(readOptions, HELP);
if (options?.measurement === 'failover') await reportFailover(options);
if (options?.measurement === 'cuts') await reportCuts(options);
if (options?.measurement === 'documents') await reportDocuments(options);
