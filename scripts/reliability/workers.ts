import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import mongoose from 'mongoose';
import { type LogLine, WorkerProcess } from '../../test/support/worker-process.js';

export const MAX_OUTAGE_MS = 60_000;
const HANDLERS = fileURLToPath(new URL('handlers.mjs', import.meta.url));

/** Worker processes with default options that run the jobs `wait`. */
export function startWorkers(uri: string, count: number): Promise<WorkerProcess[]> {
  const env = { MONGODB_URI: uri, HANDLERS };
  return Promise.all(
    Array.from({ length: count }, (_, index) => WorkerProcess.start(`worker-${index + 1}`, env)),
  );
}

export function isStarted({ msg, taskType }: LogLine): boolean {
  return taskType === 'wait' && msg.endsWith('started');
}

/** The line is written after MongoDB has acknowledged the outcome and the row of the attempt. */
export function isCompleted({ msg, taskType }: LogLine): boolean {
  return taskType === 'wait' && msg.includes('completed');
}

/** When each worker wrote its first matching line after `since`. */
export function firstLines(
  workers: readonly WorkerProcess[],
  matches: (line: LogLine) => boolean,
  since: number,
): Promise<number[]> {
  const first = async (worker: WorkerProcess): Promise<number> =>
    timeOf(await worker.line((line) => matches(line) && timeOf(line) > since));
  return within('every worker to work again', Promise.all(workers.map(first)));
}

function timeOf({ time }: LogLine): number {
  return typeof time === 'number' ? time : Date.parse(String(time));
}

export interface Anomalies {
  /** Jobs that were started more than once. */
  startedTwice: number;
  /** Crashes that were counted although no worker died. */
  crashes: number;
}

export async function countAnomalies(uri: string, workers: readonly WorkerProcess[]): Promise<Anomalies> {
  const ids = workers.flatMap(({ lines }) => lines.filter(isStarted)).map(({ jobId }) => jobId);
  const connection = await mongoose.createConnection(uri).asPromise();
  try {
    const crashes = await connection.collection('chronos_jobs').countDocuments({ crashes: { $gt: 0 } });
    return { startedTwice: ids.length - new Set(ids).size, crashes };
  } finally {
    await connection.destroy();
  }
}

export async function within<T>(what: string, work: Promise<T>): Promise<T> {
  const limit = new AbortController();
  const late = pause(MAX_OUTAGE_MS, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`after ${MAX_OUTAGE_MS} ms still waiting for ${what}`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    limit.abort();
  }
}
