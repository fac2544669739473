import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { payloads } from './tally.mjs';

const QUEUE = 'bench';
const CHUNK = 1000;

export const settings = (concurrency) =>
  `addBulk; concurrency ${concurrency}; Redis appends to its file and syncs it every second; keeps finished jobs, its default`;

export async function clear(url) {
  const redis = new Redis(url);
  await redis.flushall();
  await redis.quit();
}

export async function enqueue(url, total) {
  const queue = new Queue(QUEUE, { connection: { url } });
  for (const chunk of payloads(total, CHUNK)) {
    await queue.addBulk(chunk.map((data) => ({ name: 'noop', data })));
  }
  await queue.close();
}

export async function work(url, concurrency, tally) {
  const handler = async ({ data }) => tally.started(data.index);
  const worker = new Worker(QUEUE, handler, { connection: { url }, concurrency });
  worker.on('completed', () => tally.completed());
  worker.on('error', console.error);
  await tally.whenCompleted();
  return () => worker.close();
}
