import assert from 'node:assert/strict';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { withFailPoint } from '../../support/fail-point.js';

describe('idempotency keys', () => {
  const database = useSharedDatabase();

  it('return the existing job, marked as a duplicate, when a key is used twice', async () => {
    const { scheduler } = manualScheduler(database);
    const first = await scheduler.dispatch('mail', { n: 1 }, { key: 'welcome:42' });
    const second = await scheduler.dispatch('mail', { n: 2 }, { key: 'welcome:42' });
    assert.deepEqual([first.id, first.duplicate], ['mail=welcome:42', false]);
    assert.deepEqual([second.id, second.duplicate], ['mail=welcome:42', true]);
    assert.deepEqual((await scheduler.getJob(first.id))?.payload, { n: 1 });
    assert.equal(await database.collections.jobs.countDocuments(), 1);
  });

  it('are separate for each task type', async () => {
    const { scheduler } = manualScheduler(database);
    await scheduler.dispatch('mail', null, { key: 'k' });
    assert.equal((await scheduler.dispatch('report', null, { key: 'k' })).duplicate, false);
  });

  it('create one job when many dispatches use the same key at once', async () => {
    const { scheduler } = manualScheduler(database);
    const handles = await Promise.all(
      Array.from({ length: 20 }, () => scheduler.dispatch('mail', null, { key: 'k' })),
    );
    assert.equal(handles.filter(({ duplicate }) => !duplicate).length, 1);
    assert.equal(new Set(handles.map(({ id }) => id)).size, 1);
  });

  it('are taken while the job exists, finished or not, and free after it is pruned', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('mail', () => undefined);
    await scheduler.dispatch('mail', null, { key: 'k' });
    await scheduler.run();
    assert.equal((await scheduler.dispatch('mail', null, { key: 'k' })).duplicate, true);
    clock.advance(1000);
    await scheduler.prune(0);
    assert.equal((await scheduler.dispatch('mail', null, { key: 'k' })).duplicate, false);
  });

  it('do not report a duplicate when the reply to the insert is lost', async () => {
    const { scheduler } = manualScheduler(database);
    const lost = { commands: ['insert'], how: 'lostReply', times: 1 } as const;
    const handle = await withFailPoint(database, lost, () => scheduler.dispatch('mail', null, { key: 'k' }));
    assert.equal(handle.duplicate, false);
    const other = await withFailPoint(database, lost, () => scheduler.dispatch('mail', null, { key: 'k' }));
    assert.equal(other.duplicate, true, 'an earlier job with the key is still a duplicate');
    assert.equal(await database.collections.jobs.countDocuments(), 1);
  });

  it('neither lose nor duplicate a job when the connection breaks', async () => {
    const { scheduler } = manualScheduler(database);
    await scheduler.getJob('connect first');
    // More than the single retry of the driver.
    const broken = { commands: ['insert'], how: 'noConnection', times: 3 } as const;
    for (const options of [{ key: 'k' }, {}]) {
      const handle = await withFailPoint(database, broken, () => scheduler.dispatch('mail', null, options));
      assert.equal(handle.duplicate, false);
      assert.equal((await scheduler.getJob(handle.id))?.status, 'SCHEDULED');
    }
    assert.equal(await database.collections.jobs.countDocuments(), 2);
  });

  for (const how of ['lostReply', 'noConnection'] as const) {
    it(`report that it is unknown whether the job was stored (${how})`, async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.getJob('connect first');
      await assert.rejects(
        withFailPoint(database, { commands: ['insert'], how }, () =>
          scheduler.dispatch('mail', null, { key: 'k' }),
        ),
        { code: 'MONGODB_UNREACHABLE', message: /job 'mail=k' may or may not be stored/ },
      );
      assert.equal((await scheduler.dispatch('mail', null, { key: 'k' })).id, 'mail=k');
      assert.equal(await database.collections.jobs.countDocuments(), 1);
    });
  }
});
