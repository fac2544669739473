import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { mongo } from 'mongoose';
import { toStoredJob } from '../../../src/store/jobs/stored-job.js';
import { aJob } from '../../support/factories/job.js';
import { corrupted, fuzzParameters, isLongFuzz } from '../../support/fuzz.js';
import { timeAfter } from '../../support/instants.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const CORRUPTED = 40;
const NESTED = {
  retries: { max: 3, base: 10, cap: 20, jitter: 'full' },
  held: { reason: null, at: timeAfter(0) },
  cancelRequested: { reason: null, at: timeAfter(0) },
  progress: { value: 1, note: null, at: timeAfter(0) },
  error: { name: 'Error', message: 'no', code: null, stack: null },
  retention: { completed: 1, failed: 1, cancelled: 1 },
} as const;
const ABSENT = ['tags', 'expiresAt', 'keepUntil', 'waitingFor', 'settledTokens', 'firstStartedAt', 'trace'];

describe('stored jobs with one corrupted field', function () {
  if (isLongFuzz) this.timeout(0);
  const database = useSharedDatabase();

  it('never fail a pass or a sweep, cost no healthy job its run, and are listed', async () => {
    const base = { ...aJob(), ...NESTED, held: null, cancelRequested: null };
    const held = { ...base, status: 'PENDING', held: NESTED.held };
    const locked = {
      ...{ ...base, status: 'RUNNING', fence: 1, lockedBy: 'gone', lockToken: 't' },
      ...{ lockedUntil: timeAfter(-1000), queuedAt: timeAfter(-2000), startedAt: timeAfter(-2000) },
      cancelRequested: NESTED.cancelRequested,
    };
    const finished = { ...base, status: 'FAILED', finishedAt: timeAfter(-1000) };
    const more = ABSENT.map((field) => [field]);
    const documents = fc.array(
      fc.oneof(...[base, held, locked, finished].map((job) => corrupted(job, more))),
      { minLength: CORRUPTED, maxLength: CORRUPTED },
    );
    const jobs = (): mongo.Collection => database.connection.collection('chronos_jobs');
    await fc.assert(
      fc.asyncProperty(documents, async (some) => {
        const { scheduler } = manualScheduler(database, { retries: { max: 1 } });
        scheduler.registerHandler('work', () => undefined);
        const healthy = (id: string, dueAt: number): object =>
          toStoredJob(aJob({ _id: id, nextRunAt: timeAfter(dueAt) }));
        await jobs().insertMany(
          [
            healthy('a', -10_000),
            ...some.map((job, index) => ({ ...job, _id: `m${index}` as never })),
            healthy('z', 0),
          ],
          // From a server without validators.
          { bypassDocumentValidation: true },
        );
        await scheduler.run(1000);
        for (const id of ['a', 'z']) assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
        assert.equal((await scheduler.operations.listJobs({ limit: 100 })).items.length, CORRUPTED + 2);
        await scheduler.operations.listDead({ limit: 100 });
        await scheduler.operations.status();
        await scheduler.operations.doctor();
        for (let index = 0; index < CORRUPTED; index++) {
          assert.ok((await scheduler.getJob(`m${index}`)) !== null);
          await scheduler.operations.explainJob(`m${index}`);
        }
        await scheduler.stop();
        await Promise.all([jobs().deleteMany(), database.collections.executions.deleteMany()]);
      }),
      fuzzParameters(5),
    );
  });
});
