import PgBoss from 'pg-boss';
import { query, vacuum } from './postgres-client.mjs';
import { payloads } from './tally.mjs';

const QUEUE = 'bench';
const CHUNK = 1000;
const BATCH = 1000;

export const settings = (concurrency) =>
  `insert; batchSize ${BATCH}, of which ${concurrency} run at once, notifyWorker after each batch; keeps finished jobs, its default`;

export async function clear(url) {
  await query(url, 'drop schema if exists pgboss cascade');
}

export async function enqueue(url, total) {
  const boss = await start(url);
  await boss.createQueue(QUEUE);
  for (const chunk of payloads(total, CHUNK)) await boss.insert(chunk.map((data) => ({ name: QUEUE, data })));
  await boss.stop();
  await vacuum(url);
}

export async function work(url, concurrency, tally) {
  const boss = await start(url);
  const handler = async ({ data }) => tally.started(data.index);
  const worker = await boss.work(QUEUE, { batchSize: BATCH, pollingIntervalSeconds: 0.5 }, async (jobs) => {
    for (let from = 0; from < jobs.length; from += concurrency) {
      await Promise.all(jobs.slice(from, from + concurrency).map(handler));
    }
    // Otherwise it waits for the rest of its polling interval, although more jobs are waiting.
    boss.notifyWorker(worker);
  });
  // It does not report when the batch is written.
  await tally.whenCompletedInDatabase(() => boss.getQueueSize(QUEUE, { before: 'completed' }));
  return () => boss.stop({ graceful: false });
}

async function start(url) {
  const boss = new PgBoss(url);
  boss.on('error', console.error);
  await boss.start();
  return boss;
}
