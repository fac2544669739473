import { setTimeout as pause } from 'node:timers/promises';
import mongoose from 'mongoose';
import { startMongod } from '@chronos/mongod';
import { Scheduler } from '../../src/index.js';
import { TcpProxy } from '../../test/support/tcp-proxy.js';
import type { WorkerProcess } from '../../test/support/worker-process.js';
import { type Anomalies, countAnomalies, firstLines, isCompleted, startWorkers, within } from './workers.js';

export const CUT_EVERY_MS = 700;
const WORKERS = 3;
const JOB_MS = 20;
/** When fewer jobs than this wait, as many are added. */
const BACKLOG = 3000;
const REFILL_EVERY_MS = 250;
/** Outcomes that were acknowledged before a cut arrive within this time after it. */
const IN_FLIGHT_MS = 200;

export interface CutsResult extends Anomalies {
  /** How often all connections of all workers were closed. */
  cuts: number;
  /** Jobs. */
  completed: number;
  /** Milliseconds from the last cut until each worker had completed a job; for the slowest worker. */
  resumed: number;
  /** Milliseconds that the slowest worker took to stop. */
  stopped: number;
  /** Dispatched jobs that were not completed, or have no row in the execution log, when all workers were idle. */
  lost: number;
  /** The exit codes of the workers. */
  exitCodes: (number | null)[];
}

/** Milliseconds. */
const TARGETS = { resumed: 5000, stopped: 30_000 };

/** Depends on how busy the machine is. */
export function findMissedTargets({ resumed, stopped }: CutsResult): string[] {
  return [
    resumed > TARGETS.resumed &&
      `work resumed ${resumed} ms after the last cut, not within ${TARGETS.resumed} ms`,
    stopped > TARGETS.stopped && `a worker took ${stopped} ms to stop, not ${TARGETS.stopped} ms at most`,
  ].filter((missed) => missed !== false);
}

export function findErrors({ lost, startedTwice, crashes, exitCodes }: CutsResult): string[] {
  return [
    lost > 0 && `${lost} jobs were lost`,
    startedTwice > 0 && `${startedTwice} jobs were started twice`,
    crashes > 0 && `${crashes} crashes were counted although no worker died`,
    exitCodes.some((code) => code !== 0) && `the workers exited with ${exitCodes.join(', ')}, not with 0`,
  ].filter((error) => error !== false);
}

/**
 * Three worker processes work on a backlog of short jobs while all their connections are closed again and again. Rejects
 * if one of them does not work again, or does not exit, within a minute.
 */
export async function measureCuts(duration: number): Promise<CutsResult> {
  const mongod = await startMongod();
  const server = new URL(mongod.uri);
  const proxy = new TcpProxy(server.hostname, Number(server.port));
  const application = new Scheduler({ uri: mongod.uri, logger: false });
  const connection = mongoose.createConnection(mongod.uri);
  const workers: WorkerProcess[] = [];
  try {
    await proxy.restore();
    await application.install();
    const jobs = (await connection.asPromise()).collection('chronos_jobs');
    let dispatched = 0;
    const refill = async (): Promise<void> => {
      if ((await jobs.countDocuments({ status: 'SCHEDULED' })) >= BACKLOG) return;
      const batch = Array.from({ length: BACKLOG }, () => ({ taskType: 'wait', payload: JOB_MS }));
      dispatched += (await application.dispatchMany(batch)).length;
    };
    await refill();
    // Directly, not through the replica set: the driver would find out about the server behind the proxy.
    const uri = `mongodb://127.0.0.1:${proxy.port}${server.pathname}?directConnection=true`;
    workers.push(...(await startWorkers(uri, WORKERS)));
    await Promise.all(workers.map((worker) => worker.line(isCompleted)));

    const end = Date.now() + duration;
    const refilling = (async () => {
      for (; Date.now() < end; await pause(REFILL_EVERY_MS)) await refill();
    })();
    let cuts = 0;
    let lastCut = 0;
    for (; Date.now() < end; cuts++) {
      lastCut = Date.now();
      proxy.breakConnections();
      await pause(CUT_EVERY_MS);
    }
    await refilling;
    const resumed = Math.max(...(await firstLines(workers, isCompleted, lastCut + IN_FLIGHT_MS))) - lastCut;

    const isIdle = async (): Promise<void> => {
      while ((await jobs.countDocuments({ status: { $ne: 'COMPLETED' } })) > 0) await pause(100);
    };
    await within('the backlog to drain', isIdle()).catch(() => undefined);
    const stopping = Date.now();
    for (const worker of workers) worker.signal('SIGTERM');
    const exits = await within('all workers to exit', Promise.all(workers.map(({ exited }) => exited)));
    const stopped = Date.now() - stopping;
    const completed = await jobs.countDocuments({ status: 'COMPLETED', lockToken: null });
    const logged = await connection.collection('chronos_executions').countDocuments({ outcome: 'completed' });
    return {
      ...{ cuts, completed, resumed, stopped, lost: dispatched - Math.min(completed, logged) },
      exitCodes: exits.map(({ code }) => code),
      ...(await countAnomalies(mongod.uri, workers)),
    };
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
    await application.stop('1s');
    await connection.destroy();
    await proxy.cut();
    await mongod.stop();
  }
}
