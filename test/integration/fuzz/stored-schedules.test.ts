import assert from 'node:assert/strict';
import fc from 'fast-check';
import { aSchedule } from '../../support/factories/schedule.js';
import { corrupted, fuzzParameters, isLongFuzz } from '../../support/fuzz.js';
import { timeAfter } from '../../support/instants.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { jobIdsOf } from '../../support/schedules.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const HOUR = 3_600_000;
const CORRUPTED = 30;
const RULE_FIELDS = [
  'fields',
  'every',
  'constraints',
  'overridable',
  'between',
  'except',
  'startsAt',
  'endsAt',
];

describe('stored schedules with one corrupted field', function () {
  if (isLongFuzz) this.timeout(0);
  const database = useSharedDatabase();

  it('never fail a pass, cost no healthy schedule a run, and are listed', async () => {
    const optional = RULE_FIELDS.map((field) => ['rule', field]);
    const documents = fc.array(corrupted(aSchedule(), optional), {
      minLength: CORRUPTED,
      maxLength: CORRUPTED,
    });
    await fc.assert(
      fc.asyncProperty(documents, async (schedules) => {
        const { scheduler, clock } = manualScheduler(database);
        scheduler.registerHandler('work', () => undefined);
        await database.collections.schedules.insertMany(
          [
            aSchedule({ _id: 'a' }),
            ...schedules.map((schedule, index) => ({ ...schedule, _id: `m${index}` })),
            aSchedule({ _id: 'z' }),
          ],
          // Documents of an older version, or from a server without validators.
          { bypassDocumentValidation: true },
        );
        const expected: string[] = [];
        for (const hour of [1, 2]) {
          clock.advance(HOUR);
          await scheduler.run(1000);
          expected.push(timeAfter(hour * HOUR).toISOString());
          for (const id of ['a', 'z'])
            assert.deepEqual(
              await jobIdsOf(database, id),
              expected.map((at) => `${id}@${at}`),
            );
          assert.equal((await scheduler.listSchedules({ limit: 100 })).items.length, CORRUPTED + 2);
        }
        await scheduler.operations.doctor();
        await scheduler.stop();
        const { schedules: stored, jobs } = database.collections;
        await Promise.all([stored.deleteMany(), jobs.deleteMany()]);
      }),
      fuzzParameters(10),
    );
  });
});
