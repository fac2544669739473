import assert from 'node:assert/strict';
import { byHand } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { failing } from '../support/fail-point.js';

describe('keys', () => {
  const database = useSharedDatabase();

  it('the same key twice returns the job that is there, marked as such', async () => {
    const { scheduler } = byHand(database);
    const first = await scheduler.dispatch('mail', { n: 1 }, { key: 'welcome:42' });
    const second = await scheduler.dispatch('mail', { n: 2 }, { key: 'welcome:42' });
    assert.deepEqual([first.id, first.duplicate], ['mail#welcome:42', false]);
    assert.deepEqual([second.id, second.duplicate], ['mail#welcome:42', true]);
    assert.deepEqual((await scheduler.getJob(first.id))?.payload, { n: 1 });
    assert.equal(await database.collections.jobs.countDocuments(), 1);
  });

  it('a key belongs to its task type', async () => {
    const { scheduler } = byHand(database);
    await scheduler.dispatch('mail', null, { key: 'k' });
    assert.equal((await scheduler.dispatch('report', null, { key: 'k' })).duplicate, false);
  });

  it('many at once: one of them creates the job', async () => {
    const { scheduler } = byHand(database);
    const handles = await Promise.all(
      Array.from({ length: 20 }, () => scheduler.dispatch('mail', null, { key: 'k' })),
    );
    assert.equal(handles.filter(({ duplicate }) => !duplicate).length, 1);
    assert.equal(new Set(handles.map(({ id }) => id)).size, 1);
  });

  it('a key holds while its job exists, finished or not, and is free once it is pruned', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.registerHandler('mail', () => undefined);
    await scheduler.dispatch('mail', null, { key: 'k' });
    await scheduler.run();
    assert.equal((await scheduler.dispatch('mail', null, { key: 'k' })).duplicate, true);
    clock.advance(1000);
    await scheduler.prune(0);
    assert.equal((await scheduler.dispatch('mail', null, { key: 'k' })).duplicate, false);
  });

  it('a lost reply of our own insert is not taken for a duplicate', async () => {
    const { scheduler } = byHand(database);
    const lost = { commands: ['insert'], how: 'lostReply', times: 1 } as const;
    const handle = await failing(database, lost, () => scheduler.dispatch('mail', null, { key: 'k' }));
    assert.equal(handle.duplicate, false);
    const other = await failing(database, lost, () => scheduler.dispatch('mail', null, { key: 'k' }));
    assert.equal(other.duplicate, true, 'the job of somebody else still is one');
    assert.equal(await database.collections.jobs.countDocuments(), 1);
  });

  it('a connection that breaks does not lose or double a job, with a key or without', async () => {
    const { scheduler } = byHand(database);
    await scheduler.getJob('connect first');
    // The driver tries once more by itself; this goes past that.
    const broken = { commands: ['insert'], how: 'noConnection', times: 3 } as const;
    for (const options of [{ key: 'k' }, {}]) {
      const handle = await failing(database, broken, () => scheduler.dispatch('mail', null, options));
      assert.equal(handle.duplicate, false);
      assert.equal((await scheduler.getJob(handle.id))?.status, 'SCHEDULED');
    }
    assert.equal(await database.collections.jobs.countDocuments(), 2);
  });

  for (const how of ['lostReply', 'noConnection'] as const) {
    it(`when it stays unknown whether the job was stored (${how}), the error says so`, async () => {
      const { scheduler } = byHand(database);
      await scheduler.getJob('connect first');
      await assert.rejects(
        failing(database, { commands: ['insert'], how }, () =>
          scheduler.dispatch('mail', null, { key: 'k' }),
        ),
        { code: 'MONGODB_UNREACHABLE', message: /not known whether job 'mail#k' was stored/ },
      );
      assert.equal((await scheduler.dispatch('mail', null, { key: 'k' })).id, 'mail#k');
      assert.equal(await database.collections.jobs.countDocuments(), 1);
    });
  }
});
