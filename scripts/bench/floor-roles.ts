import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import mongoose, { type mongo } from 'mongoose';
import { DEFAULT_PREFIX } from '../../src/config/connection-options.js';
import { DUE_PROJECTION } from '../../src/store/jobs/claim.js';
import { type StoredExecution } from '../../src/store/jobs/stored-execution.js';
import { type StoredJob, toJobId, toStoredJob } from '../../src/store/jobs/stored-job.js';
import { openCollections } from '../../src/store/schema/collections.js';
import { CLAIM_KEYS } from '../../src/store/schema/job-schemas.js';
import { type Context, Recorder, type Report, type Role, sharedNow, type Work } from './roles.js';
import { sampleJob } from './sample-job.js';

// The floor of every figure: the same reads and writes with the MongoDB driver alone, without a scheduler.

type Of<Name extends Role['name']> = Extract<Role, { name: Name }>;

const CHUNK = 1000;
const BY_ID = { hint: { _id: 1 } } as const;

interface Floor {
  jobs: mongo.Collection<StoredJob>;
  executions: mongo.Collection<StoredExecution>;
  close: () => Promise<void>;
}

interface Claim {
  jobs: StoredJob[];
  token: string;
  now: Date;
}

async function open(uri: string): Promise<Floor> {
  const connection = await mongoose.createConnection(uri).asPromise();
  const { jobs, executions } = openCollections({
    client: connection.getClient(),
    database: connection.name,
    prefix: DEFAULT_PREFIX,
  });
  return { jobs, executions, close: () => connection.destroy() };
}

export const floorRoles = {
  /** Runs all due jobs; claims the next batch while the previous one is settled, which is the fastest way. */
  async drain({ uri }: Context, { work, batch }: Of<'drain'>): Promise<Report> {
    const recorder = new Recorder();
    const floor = await open(uri);
    let done = 0;
    for (let next = claim(floor, batch); ;) {
      const claimed = await next;
      if (claimed.jobs.length === 0) break;
      for (const { _id } of claimed.jobs) recorder.started(toJobId(_id));
      next = claim(floor, batch);
      await settle(floor, claimed, work);
      done += claimed.jobs.length;
    }
    const report = recorder.report(done);
    await floor.close();
    return report;
  },

  /** The minimum for a worker in another process: read the insert from the change stream, and claim. */
  async floorReceive({ uri, ready }: Context, { count }: Of<'floorReceive'>): Promise<Report> {
    const recorder = new Recorder();
    const { jobs, close } = await open(uri);
    const pipeline = [{ $match: { operationType: 'insert' } }, { $project: { operationType: 1 } }];
    const stream = jobs.watch(pipeline, { maxAwaitTimeMS: 1000, readConcern: { level: 'majority' } });
    await stream.tryNext();
    ready();
    while (recorder.latencies.length < count) {
      if ((await stream.tryNext()) === null) continue;
      const job = await jobs.findOneAndUpdate(
        { status: 'SCHEDULED', queue: 'default', taskType: 'noop', nextRunAt: { $lte: new Date() } },
        { $set: { status: 'RUNNING' }, $inc: { fence: 1 } },
        { sort: { priority: 1, nextRunAt: 1, _id: 1 }, hint: CLAIM_KEYS },
      );
      if (job !== null) recorder.latencies.push(sharedNow() - (job.payload as { at: number }).at);
    }
    await stream.close();
    await close();
    return recorder.report(recorder.latencies.length);
  },

  async floorSend({ uri }: Context, { count, gap }: Of<'floorSend'>): Promise<Report> {
    const recorder = new Recorder();
    const { jobs, close } = await open(uri);
    for (let index = 0; index < count; index++) {
      await jobs.insertOne({ ...toStoredJob(sampleJob(index)), payload: { at: sharedNow() } });
      await pause(gap);
    }
    await close();
    return recorder.report(count);
  },

  async insert({ uri }: Context, { total, how }: Of<'insert'>): Promise<Report> {
    const recorder = new Recorder();
    const { jobs, close } = await open(uri);
    const size = how === 'bulk' ? CHUNK : 1;
    for (let index = 0; index < total; index += size) {
      const chunk = Array.from({ length: Math.min(size, total - index) }, (_, offset) =>
        toStoredJob(sampleJob(index + offset)),
      );
      if (how === 'bulk') await jobs.insertMany(chunk, { ordered: false });
      else for (const job of chunk) await jobs.insertOne(job);
    }
    const report = recorder.report(total);
    await close();
    return report;
  },
};

async function claim({ jobs }: Floor, batch: number): Promise<Claim> {
  const [now, token] = [new Date(), randomUUID()];
  const due = await jobs
    .find(
      { status: 'SCHEDULED', queue: 'default', taskType: 'noop', nextRunAt: { $lte: now } },
      {
        hint: CLAIM_KEYS,
        sort: { priority: 1, nextRunAt: 1, _id: 1 },
        limit: batch,
        projection: DUE_PROJECTION,
        batchSize: batch,
        singleBatch: true,
      },
    )
    .toArray();
  if (due.length > 0) {
    await jobs.updateMany(
      {
        _id: { $in: due.map(({ _id }) => _id) },
        status: 'SCHEDULED',
        fence: { $in: [0, null] },
        nextRunAt: { $lte: now },
      },
      {
        $set: {
          status: 'RUNNING',
          lockedBy: 'floor',
          lockedUntil: new Date(now.getTime() + 60_000),
          lockToken: token,
          queuedAt: now,
          startedAt: now,
        },
        $inc: { fence: 1 },
      },
      BY_ID,
    );
  }
  return { jobs: due, token, now };
}

async function settle({ jobs, executions }: Floor, claimed: Claim, work: Work): Promise<void> {
  const { token, now } = claimed;
  const owned = { lockToken: token, status: { $in: ['QUEUED' as const, 'RUNNING' as const] } };
  const ids = claimed.jobs.map(({ _id }) => _id);
  if (work === 'result') {
    await jobs.bulkWrite(
      ids.map((_id, index) => ({
        updateOne: { filter: { _id, ...owned }, update: settlingUpdate(token, now, { index }), ...BY_ID },
      })),
      { ordered: false },
    );
  } else await jobs.updateMany({ _id: { $in: ids }, ...owned }, settlingUpdate(token, now, null), BY_ID);
  const rows = claimed.jobs.map(({ _id, taskType = '', queue = '' }): StoredExecution => {
    const jobId = toJobId(_id);
    return {
      ...{ _id: `${jobId}:1`, jobId, taskType: taskType ?? '', queue: queue ?? '', attempt: 1, fence: 1 },
      ...{ lockToken: token, workerId: 'floor', startedAt: now, finishedAt: now, duration: 0 },
      outcome: 'completed',
    };
  });
  await executions.insertMany(rows, { ordered: false });
}

function settlingUpdate(token: string, now: Date, result: unknown): mongo.UpdateFilter<StoredJob> {
  return {
    $set: {
      ...{ status: 'COMPLETED', settledToken: token, settledBy: 'floor', finishedAt: now },
      ...(result !== null && { result }),
    },
    $unset: { lockedBy: '', lockedUntil: '', lockToken: '' },
    $max: { startedAt: now },
    $min: { firstStartedAt: now },
  };
}
