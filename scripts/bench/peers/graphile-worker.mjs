import { Logger, makeWorkerUtils, run, WorkerPreset } from 'graphile-worker';
import { connect, query, vacuum } from './postgres-client.mjs';
import { payloads } from './tally.mjs';

const CHUNK = 1000;
/** The settings of the benchmark in its documentation, except for the concurrency. */
const BATCHING = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };

export const settings = (concurrency) =>
  `addJobs; concurrentJobs ${concurrency}, localQueue.size ${BATCHING.localQueue.size}, completeJobBatchDelay ${BATCHING.completeJobBatchDelay}; always deletes finished jobs`;

const logger = new Logger(() => (level, message) => {
  if (level === 'error' || level === 'warning') console.error(message);
});

export async function clear(url) {
  await query(url, 'drop schema if exists graphile_worker cascade');
}

export async function enqueue(url, total) {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  for (const chunk of payloads(total, CHUNK)) {
    await utils.addJobs(chunk.map((payload) => ({ identifier: 'noop', payload })));
  }
  await utils.release();
  await vacuum(url);
}

export async function work(url, concurrency, tally) {
  const connection = { connectionString: url, maxPoolSize: Math.max(10, concurrency + 2) };
  const runner = await run({
    preset: {
      extends: [WorkerPreset],
      worker: { ...connection, ...BATCHING, logger, concurrentJobs: concurrency },
    },
    taskList: { noop: ({ index }) => tally.started(index) },
    crontab: '',
    noHandleSignals: true,
  });
  // It emits its events before the batch is written.
  const client = await connect(url);
  await tally.whenCompletedInDatabase(async () => {
    const { rows } = await client.query('select count(*)::int as unfinished from graphile_worker.jobs');
    return rows[0].unfinished;
  });
  await client.end();
  return () => runner.stop();
}
