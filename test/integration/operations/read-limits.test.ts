import assert from 'node:assert/strict';
import { ChronosError } from '../../../src/index.js';
import type { CollectionName } from '../../../src/store/schema/collections.js';
import { createStore, type Store } from '../../../src/store/store.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { withFailPoint } from '../../support/fail-point.js';
import { START } from '../../support/instants.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('reads that a person waits for', () => {
  const database = useSharedDatabase();

  /** The time limits with which the operation asked the server. */
  async function limitsOf(operation: (store: Store) => Promise<unknown>): Promise<unknown[]> {
    const db = database.connection.getClient().db(database.connection.name);
    await db.command({ profile: 2 });
    await operation(createStore(database.stored));
    await db.command({ profile: 0 });
    const entries = await db.collection('system.profile').find({ op: 'query' }).toArray();
    await db.dropCollection('system.profile');
    return entries.map(({ command }) => (command as { maxTimeMS?: unknown }).maxTimeMS);
  }

  it('have a time limit on the server [J14]', async () => {
    const person = { limitTime: true };
    assert.deepEqual(
      await limitsOf((store) =>
        store.listSkips({ filter: { scheduleId: 's' }, after: undefined, limit: 10 }),
      ),
      [5000],
    );
    assert.deepEqual(await limitsOf((store) => store.findSkipsAt('s', START)), [5000]);
    assert.deepEqual(await limitsOf((store) => store.findExecutions('a')), [5000]);
    assert.deepEqual(await limitsOf((store) => store.findSchedules(['a', 'b'], person)), [5000]);
    assert.deepEqual(await limitsOf((store) => store.findForeignDefinitions(['a'], person)), [5000]);
    const forStart = await limitsOf((store) => store.findForeignDefinitions(['a']));
    assert.deepEqual(forStart, [undefined], 'a worker that starts waits');
  });

  it('say what to do when the limit is exceeded, depending on the query [J14]', async () => {
    const { operations } = manualScheduler(database).scheduler;
    await operations.status();
    const slow = (collection: CollectionName, read: () => Promise<unknown>): Promise<string> =>
      withFailPoint(database, { commands: ['find'], collection, how: 'tooSlow' }, () =>
        read().then(
          () => 'answered',
          (error: unknown) =>
            error instanceof ChronosError ? `${error.code}: ${error.message}` : 'another error',
        ),
      );
    const executions = await slow('executions', () => operations.listExecutions({ taskType: 'rare' }));
    assert.match(executions, /QUERY_TOO_SLOW: .*executions took .*filter by job/);
    const jobs = await slow('jobs', () => operations.listJobs({ taskType: 'rare' }));
    assert.match(jobs, /QUERY_TOO_SLOW: .*jobs took .*a state, a schedule or the beginning of an id/);
    const foreign = await slow('schedules', () => operations.diffSchedules());
    assert.match(foreign, /QUERY_TOO_SLOW: .*has less to do/);
  });
});
