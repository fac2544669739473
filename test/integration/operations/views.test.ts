import assert from 'node:assert/strict';
import { serveHttp } from '../../../src/http/server.js';
import { aWorker } from '../../support/factories/worker.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const HOUR = 3_600_000;
/** What only the store needs. */
const INTERNAL = ['_id', 'lockToken', 'settledToken', 'nonce', 'hash', 'decision', 'pending'];

function keysOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null || value instanceof Date) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    Array.isArray(value) ? keysOf(inner) : [key, ...keysOf(inner)],
  );
}

describe('what the library returns', () => {
  const database = useSharedDatabase();

  it('has no field of a stored document that only the store needs [B27]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', () => 'done');
    scheduler.registerHandler('fails', () => Promise.reject(new Error('no')), { retries: { max: 1 } });
    scheduler.schedule('nightly', () => undefined).daily();
    await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
    await scheduler.pauseSchedule('s');
    clock.advance(2 * HOUR);
    await scheduler.resumeSchedule('s');
    clock.advance(HOUR);
    const handle = await scheduler.dispatch('work', { a: 1 });
    const dead = await scheduler.dispatch('fails');
    await scheduler.run();
    await scheduler.run();
    const { operations } = scheduler;
    await operations.audit({ who: 'ada', action: 'look' });
    await database.collections.workers.insertOne(aWorker());
    const execution = `${handle.id}:1`;

    const returned: Record<string, unknown> = {
      getJob: await scheduler.getJob(handle.id),
      wait: await handle.wait(),
      getExecutions: await scheduler.getExecutions(handle.id),
      getSchedule: await scheduler.getSchedule('s'),
      listSchedules: (await scheduler.listSchedules()).items,
      getSkips: (await scheduler.getSkips('s')).items,
      listJobs: (await operations.listJobs()).items,
      listDead: (await operations.listDead()).items,
      showJob: await operations.showJob(dead.id),
      explainJob: await operations.explainJob(dead.id),
      listExecutions: (await operations.listExecutions()).items,
      showExecution: await operations.showExecution(execution),
      listWorkers: (await operations.listWorkers()).items,
      listQueues: (await operations.listQueues()).items,
      listDefinitions: (await operations.listDefinitions()).items,
      listAudit: (await operations.listAudit()).items,
      status: await operations.status(),
    };
    for (const [method, value] of Object.entries(returned)) {
      assert.ok(keysOf(value).length > 0, `${method} returned nothing`);
      assert.deepEqual(
        keysOf(value).filter((key) => INTERNAL.includes(key)),
        [],
        method,
      );
    }

    const server = await serveHttp(scheduler, { port: 0 });
    try {
      for (const path of [
        'jobs',
        `jobs/${handle.id}`,
        'dead',
        'executions',
        `executions/${execution}`,
        'schedules',
        'schedules/s',
        'schedules/s/skips',
        'workers',
        'queues',
        'definitions',
        'audit',
      ]) {
        const response = await fetch(`${server.address}/api/v1/${path}`);
        const body: unknown = await response.json();
        assert.equal(response.status, 200, `${path}: ${JSON.stringify(body)}`);
        assert.deepEqual(
          keysOf(body).filter((key) => INTERNAL.includes(key)),
          [],
          path,
        );
      }
    } finally {
      await server.close();
    }
  });
});
