import { setTimeout as pause } from 'node:timers/promises';
import mongoose from 'mongoose';
import { type Member, startMongod } from '@chronos/mongod';
import { Scheduler } from '../../src/index.js';
import type { WorkerProcess } from '../../test/support/worker-process.js';
import {
  type Anomalies,
  countAnomalies,
  firstLines,
  isCompleted,
  isStarted,
  MAX_OUTAGE_MS,
  startWorkers,
  within,
} from './workers.js';

/** What happens to the primary. */
export type Fault = 'kill' | 'freeze';

/** Milliseconds from the fault. */
export interface FailoverResult extends Anomalies {
  /** A new primary was elected. */
  elected: number;
  /** A majority acknowledged a write to it, which was sent directly: before that, no program can work. */
  writable: number;
  /** Each worker started a job that it claimed from the new primary; for the slowest worker. */
  started: number;
  /** Each worker had an outcome and its row in the execution log acknowledged; for the slowest worker. */
  resumed: number;
  /** An application could dispatch again. */
  dispatched: number;
  /** Dispatches that failed meanwhile. */
  failedDispatches: number;
}

const WORKERS = 2;
/** Enough for a minute of work at the default concurrency of two workers. */
const JOBS = 12_000;
const JOB_MS = 100;
const BEFORE_FAULT_MS = 5000;
const DISPATCH_GAP_MS = 100;
/** Outcomes that the old primary acknowledged arrive within this time after the fault. */
const IN_FLIGHT_MS = 500;
/** Jobs that were claimed before the fault start within this time after it. */
const PREFETCHED_MS = 3000;

/**
 * Two worker processes with default options on a replica set of three work on a backlog; then the
 * primary is killed or frozen. All processes share one machine and its clock.
 */
export async function measureFailover(fault: Fault, electionTimeout: number): Promise<FailoverResult> {
  const mongod = await startMongod({ members: 3, electionTimeout });
  const application = new Scheduler({ uri: mongod.uri, logger: false });
  const workers: WorkerProcess[] = [];
  try {
    await application.install();
    await application.dispatchMany(
      Array.from({ length: JOBS }, () => ({ taskType: 'wait', payload: JOB_MS })),
    );
    workers.push(...(await startWorkers(mongod.uri, WORKERS)));
    await Promise.all(workers.map((worker) => worker.line(isCompleted)));
    await pause(BEFORE_FAULT_MS);

    const primary = await findPrimary(mongod.members);
    if (primary === undefined) throw new Error('there is no primary before the fault');
    const others = mongod.members.filter((member) => member !== primary);
    const faultAt = Date.now();
    process.kill(primary.pid, fault === 'kill' ? 'SIGKILL' : 'SIGSTOP');

    const [server, dispatches, completed] = await Promise.all([
      untilWritable(others),
      dispatchUntilStored(application),
      firstLines(workers, isCompleted, faultAt + IN_FLIGHT_MS),
    ]);
    const started = await firstLines(workers, isStarted, faultAt + PREFETCHED_MS);
    // If it comes back now, as a stale primary, nothing may run twice.
    if (fault === 'freeze') process.kill(primary.pid, 'SIGCONT');
    await pause(BEFORE_FAULT_MS);
    return {
      elected: server.electedAt - faultAt,
      writable: server.writableAt - faultAt,
      started: Math.max(...started) - faultAt,
      resumed: Math.max(...completed) - faultAt,
      dispatched: dispatches.storedAt - faultAt,
      failedDispatches: dispatches.failed,
      ...(await countAnomalies(mongod.uri, workers)),
    };
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
    await application.stop('1s');
    await mongod.stop();
  }
}

async function untilWritable(members: readonly Member[]): Promise<{ electedAt: number; writableAt: number }> {
  const elect = async (): Promise<Member> => {
    for (;;) {
      const primary = await findPrimary(members);
      if (primary !== undefined) return primary;
      await pause(50);
    }
  };
  const { uri } = await within('a new primary', elect());
  const electedAt = Date.now();
  const connection = await mongoose.createConnection(uri).asPromise();
  try {
    const written = connection.collection('probe').insertOne({}, { writeConcern: { w: 'majority' } });
    await within('a majority to acknowledge a write', written);
    return { electedAt, writableAt: Date.now() };
  } finally {
    await connection.destroy();
  }
}

/** Only members that answer at once. */
async function findPrimary(members: readonly Member[]): Promise<Member | undefined> {
  const found = await Promise.all(
    members.map(async (member) => {
      const connection = mongoose.createConnection(member.uri, { serverSelectionTimeoutMS: 1000 });
      try {
        const hello = await (await connection.asPromise()).getClient().db('admin').command({ hello: 1 });
        return hello['isWritablePrimary'] === true ? member : undefined;
      } finally {
        await connection.destroy();
      }
    }),
  );
  return found.find((member) => member !== undefined);
}

/** Dispatches again and again, as an application that retries, until one succeeds. */
async function dispatchUntilStored(application: Scheduler): Promise<{ storedAt: number; failed: number }> {
  const end = Date.now() + MAX_OUTAGE_MS;
  // The first one could still be acknowledged by the old primary.
  await pause(IN_FLIGHT_MS);
  for (let failed = 0; ; failed++) {
    try {
      await application.dispatch('wait', JOB_MS);
      return { storedAt: Date.now(), failed };
    } catch (error) {
      if (Date.now() > end) throw error;
      await pause(DISPATCH_GAP_MS);
    }
  }
}
