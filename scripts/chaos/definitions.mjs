// The definitions of the worker processes, from the table in CHAOS_TABLE. Each start and end is written to the collection
// `journal` through a separate connection, so that the check uses records that the scheduler did not write.
import mongoose from 'mongoose';
import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as pause } from 'node:timers/promises';

const connection = await mongoose.createConnection(process.env.MONGODB_URI, { maxPoolSize: 5 }).asPromise();
const database = connection.getClient().db(connection.name);
const journal = database.collection('journal');
const contention = database.collection('contention');

function clock() {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

function record({ id: jobId, fence, lockedBy: worker }, kind) {
  return journal.insertOne({ jobId, fence, worker, kind, at: clock() }, { writeConcern: { w: 1 } });
}

export default function register(scheduler) {
  for (const { name, rhythm, overlap, takes } of JSON.parse(process.env.CHAOS_TABLE)) {
    const handler = async (_, job) => {
      await record(job, 'start');
      try {
        await pause(takes, undefined, { signal: job.signal });
      } finally {
        await record(job, 'end');
      }
    };
    const [method, ...args] = rhythm.call;
    const schedule = scheduler.schedule(name, handler)[method](...args);
    // `skip` is the default.
    if (overlap !== 'skip') schedule.overlap(overlap);
  }
  subscribe('chronos:plan', ({ workerId, conflicts }) => {
    if (conflicts === 0) return;
    const update = { $inc: { rounds: 1, lost: conflicts } };
    void contention.updateOne({ _id: workerId }, update, { upsert: true }).catch(() => undefined);
  });
  scheduler.on('worker:state', ({ state }) => {
    if (state === 'Stopped') void connection.destroy();
  });
}
