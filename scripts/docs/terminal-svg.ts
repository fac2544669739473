// npm run docs:terminal: pictures of `chronos status` and `chronos top` for the docs, from the real command on an
// embedded MongoDB with sample work. Needs `script` of util-linux, which gives the command a terminal.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { startMongod } from '@chronos/mongod';
import { Scheduler } from '../../src/index.js';
import { toSvg } from './ansi-svg.js';

const COLUMNS = 100;
const ROWS = 30;

/** Runs the built command on a terminal and returns its output. Types `keys` after the third frame. */
async function capture(words: string, uri: string, keys: string): Promise<string> {
  const command = `stty cols ${COLUMNS} rows ${ROWS}; exec ${process.execPath} dist/src/cli/main.js ${words}`;
  const env = { PATH: process.env['PATH'], TERM: 'xterm-256color', MONGODB_URI: uri };
  const child = spawn('script', ['-qec', command, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const output = text(child.stdout);
  let frames = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    if (chunk.includes('q to quit') && ++frames === 3) child.stdin.write(keys);
  });
  await once(child, 'exit');
  return output;
}

function repeat<T>(count: number, request: T): T[] {
  return Array.from({ length: count }, () => request);
}

const EMAIL = { taskType: 'sendEmail', payload: null, options: { queue: 'mail' } };

/** Starts two workers, and dispatches jobs that fail, that take long, and that no worker serves. */
async function startSampleWork(uri: string): Promise<Scheduler[]> {
  // Workers store their load with every heartbeat.
  const common = { uri, heartbeatInterval: '500ms', logger: false } as const;
  const mail = new Scheduler({ ...common, workerId: 'mail-1', queues: ['default', 'mail'], concurrency: 10 });
  const reports = new Scheduler({ ...common, workerId: 'reports-1', queues: ['reports'], concurrency: 4 });
  mail.registerHandler('sendEmail', (_, job) => pause(40, { sent: true }, { signal: job.signal }));
  mail.registerHandler('chargeCard', () => Promise.reject(new Error('card declined')), {
    retries: { max: 1 },
  });
  reports.registerHandler('generateReport', (_, job) => pause(60_000, null, { signal: job.signal }));
  await Promise.all([mail.start(), reports.start()]);
  await mail.dispatchMany([
    ...repeat(900, EMAIL),
    ...repeat(3, { taskType: 'chargeCard', payload: null }),
    ...repeat(9, { taskType: 'generateReport', payload: null, options: { queue: 'reports' } }),
    ...repeat(40, { taskType: 'sendEmail', payload: null, options: { queue: 'mail', delay: '1h' } }),
    ...repeat(5, { taskType: 'importOrders', payload: null, options: { queue: 'imports' } }),
  ]);
  return [mail, reports];
}

const mongod = await startMongod();
try {
  const workers = await startSampleWork(mongod.uri);
  // Long enough for throughput and durations to show.
  await pause(6000);
  await workers[0]?.dispatchMany(repeat(1500, EMAIL));
  await pause(2000);
  const status = await capture('status', mongod.uri, '');
  const top = await capture('top --interval 300ms', mongod.uri, 'q');
  await writeFile('docs/status.svg', toSvg(status, COLUMNS, 'npx chronos status'));
  await writeFile('docs/top.svg', toSvg(top, COLUMNS, 'npx chronos top'));
  await Promise.all(workers.map((worker) => worker.stop('100ms')));
} finally {
  await mongod.stop();
}
