import assert from 'node:assert/strict';
import type { Scheduler } from '../../../src/index.js';
import { useDatabase } from '../../support/database.js';
import { signal } from '../../support/events.js';
import { runChronosInProcess } from '../../support/fake-terminal.js';

const NAMES = ['audit', 'executions', 'installation', 'jobs', 'locks', 'schedules', 'skips', 'workers'];

describe('the prefix of the collections', () => {
  const database = useDatabase();

  const collectionNames = async (): Promise<string[]> => {
    const found = await database.connection.db?.listCollections({}, { nameOnly: true }).toArray();
    return (found ?? []).map(({ name }) => name).sort();
  };

  it('is chronos_ by default, and empty if that is set [B35]', async () => {
    await database.connection.dropDatabase();
    await database.scheduler().install();
    assert.deepEqual(
      await collectionNames(),
      NAMES.map((name) => `chronos_${name}`),
    );
    await database.connection.dropDatabase();
    await database.scheduler({ prefix: '' }).install();
    assert.deepEqual(await collectionNames(), NAMES);
    assert.deepEqual(
      (await database.scheduler({ prefix: '' }).operations.doctor())
        .filter(({ level }) => level !== 'ok')
        .map(({ check }) => check),
      ['workersAlive'],
    );
  });

  it('lets Chronos live beside collections of the application [B35]', async () => {
    const jobs = database.connection.collection('jobs');
    await jobs.insertOne({ title: 'engineer', status: 'SCHEDULED', nextRunAt: new Date(0) });
    await assert.rejects(database.scheduler({ prefix: '' }).start(), {
      code: 'COLLECTION_TAKEN',
      message: /\.jobs' .*choose another prefix/,
    });
    const scheduler = database.scheduler({ taskHandlers: { work: () => 'done' } });
    await scheduler.start();
    assert.equal((await (await scheduler.dispatch('work')).wait()).result, 'done');
    await scheduler.prune('0s');
    assert.equal((await jobs.findOne())?.['title'], 'engineer');
  });

  it('keeps the jobs, schedules, workers, locks and audit entries of installations in one database apart [B35]', async () => {
    const installations = await Promise.all(
      ['first_', 'second.', ''].map(async (prefix) => {
        const ran: unknown[] = [];
        const scheduler = database.scheduler({
          ...{ prefix, workerId: `worker of ${prefix}`, pollInterval: '1h' },
          taskHandlers: { work: (payload: unknown) => void ran.push(payload) },
        });
        await scheduler.start();
        return { prefix, ran, scheduler };
      }),
    );
    const each = <T>(work: (scheduler: Scheduler, prefix: string) => Promise<T>): Promise<T[]> =>
      Promise.all(installations.map(({ scheduler, prefix }) => work(scheduler, prefix)));

    // From another process, so that only the change stream reports it; with the same key and the same id.
    await each(async (_, prefix) => {
      const other = database.scheduler({ prefix });
      const handle = await other.dispatch('work', prefix, { key: 'one' });
      assert.equal(handle.duplicate, false, prefix);
      assert.equal((await handle.wait()).status, 'COMPLETED');
      await other.addSchedule({ id: 'yearly', taskType: 'work', cron: '0 0 1 1 *', payload: prefix });
      await other.operations.audit({ who: `user of ${prefix}`, action: 'test' });
    });
    for (const { prefix, ran } of installations) assert.deepEqual(ran, [prefix]);

    await each(async (scheduler, prefix) => {
      const { operations } = scheduler;
      assert.deepEqual(
        (await operations.listJobs()).items.map(({ id }) => id),
        ['work=one'],
      );
      assert.deepEqual((await scheduler.getJob('work=one'))?.payload, prefix);
      assert.equal((await scheduler.getSchedule('yearly'))?.payload, prefix);
      assert.deepEqual(
        (await operations.listWorkers()).items.map(({ id }) => id),
        [`worker of ${prefix}`],
      );
      assert.deepEqual(
        (await operations.listAudit()).items.map(({ who }) => who),
        [`user of ${prefix}`],
      );
    });

    // All of them hold the lock with the same name at the same time.
    const all = signal();
    let holders = 0;
    await each((scheduler) =>
      scheduler.withLock('report', () => {
        if (++holders === installations.length) all.fire();
        return all.promise;
      }),
    );

    await installations[0]?.scheduler.operations.cancelJobs({});
    await installations[0]?.scheduler.removeSchedule('yearly');
    assert.deepEqual(await each(async (scheduler) => (await scheduler.getSchedule('yearly')) === null), [
      true,
      false,
      false,
    ]);
  });

  it('is an option of every command, and PREFIX sets it for processes [B35]', async () => {
    await database.scheduler({ prefix: 'shop_' }).install();
    const { id } = await database.scheduler({ prefix: 'shop_' }).dispatch('work');
    const list = async (args: string[], variables: Record<string, string>): Promise<string> => {
      const environment = { MONGODB_URI: database.uri, ...variables };
      const { code, stdout, stderr } = await runChronosInProcess(
        ['jobs', 'list', '--json', ...args],
        environment,
      );
      return code === 0 ? stdout : stderr;
    };
    assert.ok((await list(['--prefix', 'shop_'], {})).includes(id));
    assert.ok((await list([], { PREFIX: 'shop_' })).includes(id));
    assert.ok((await list(['--prefix', 'shop_'], { PREFIX: 'other_' })).includes(id));
    assert.ok(!(await list([], {})).includes(id));
    assert.ok(!(await list(['--prefix', ''], { PREFIX: 'shop_' })).includes(id));
    assert.match(await list(['--prefix', '$x'], {}), /--prefix must be empty, or up to 50 letters/);
  });
});
