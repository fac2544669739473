import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Scheduler } from '../../../src/index.js';
import { createStore } from '../../../src/store/store.js';
import { collectionsOf, SHORT_INTERVALS, useDatabase } from '../../support/database.js';
import { nextEvent, recordEvents } from '../../support/events.js';
import { withFailPoint } from '../../support/fail-point.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { waitUntil } from '../../support/wait-until.js';

/** The driver repeats a read once by itself. */
const THREE_TRIES = 6;

describe('start() with errors that pass', () => {
  const database = useDatabase();

  it('installs from several processes at once into a database that has jobs already', async () => {
    const name = `chronos-test-${randomUUID().slice(0, 13)}`;
    const uri = new URL(database.uri);
    uri.pathname = `/${name}`;
    const other = database.connection.useDb(name);
    const schedulers = Array.from(
      { length: 6 },
      () => new Scheduler({ uri: uri.href, ...SHORT_INTERVALS, logger: false }),
    );
    try {
      await schedulers[0]!.dispatchMany(Array.from({ length: 5000 }, () => ({ taskType: 'later' })));
      await Promise.all(schedulers.map((scheduler) => scheduler.start()));
      const found = await createStore(collectionsOf(other)).inspectCollections();
      assert.deepEqual(
        found.filter(({ exists, missing }) => !exists || missing.length > 0),
        [],
      );
    } finally {
      await Promise.all(schedulers.map((scheduler) => scheduler.stop('3s')));
      await other.dropDatabase();
    }
  });

  it('reports and repeats an installation while another process builds an index', async () => {
    await database.scheduler().install();
    await database.collections.jobs.dropIndex('claim');
    const scheduler = database.scheduler();
    const errors = recordEvents(scheduler, 'worker:error');
    const conflict = { commands: ['createIndexes'], how: 'conflict', times: 2 } as const;
    await withFailPoint(database, conflict, () => scheduler.start());
    const reported = errors.map(({ event }) => event as { operation: string; failures: number });
    assert.deepEqual(
      reported.map(({ operation, failures }) => [operation, failures]),
      [
        ['install', 1],
        ['install', 2],
      ],
    );
    assert.equal(scheduler.state, 'Running');
  });

  const steps = {
    install: { commands: ['listIndexes'], collection: 'jobs' },
    'register schedules': { commands: ['find'], collection: 'schedules' },
  } as const;
  for (const [operation, failing] of Object.entries(steps)) {
    it(`reports and repeats the step '${operation}' when connections break`, async () => {
      const scheduler = database.scheduler();
      scheduler.schedule('hourly', () => undefined).hourly();
      const errors = recordEvents(scheduler, 'worker:error');
      await withFailPoint(database, { ...failing, how: 'noConnection', times: THREE_TRIES }, () =>
        scheduler.start(),
      );
      const reported = errors.map(({ event }) => event as { operation: string; failures: number });
      assert.deepEqual(
        reported.filter((event) => event.operation === operation).map(({ failures }) => failures),
        [1, 2, 3],
      );
      assert.equal(scheduler.state, 'Running');
      assert.notEqual(await scheduler.getSchedule('hourly'), null);
    });
  }

  it('rejects with a code when a step fails until the time for connecting is over', async () => {
    const { commands, collection } = steps['register schedules'];
    for (const [how, code] of [
      ['noConnection', 'MONGODB_UNREACHABLE'],
      ['denied', 'NOT_AUTHORIZED'],
      ['error', 'MONGODB_ERROR'],
    ] as const) {
      const scheduler = database.scheduler({ connectTimeout: '1s' });
      scheduler.schedule('hourly', () => undefined).hourly();
      await withFailPoint(database, { commands, collection, how }, () =>
        assert.rejects(scheduler.start(), { name: 'ChronosError', code }),
      );
      assert.equal(scheduler.state, 'Error');
    }
  });

  it('continues when all connections are cut while it starts', async () => {
    const { hostname, port } = new URL(database.uri);
    const proxy = new TcpProxy(hostname, Number(port));
    await proxy.restore();
    try {
      const uri = new URL(database.uri);
      uri.port = String(proxy.port);
      uri.search = '?directConnection=true';
      const scheduler = database.scheduler({ uri: uri.href });
      const failed = nextEvent(scheduler, 'worker:error');
      const starting = scheduler.start();
      await waitUntil('it is connected', () => Promise.resolve(scheduler.load.connection !== null));
      await proxy.cut();
      assert.ok(['install', 'register schedules', 'renew locks'].includes((await failed).operation));
      await proxy.restore();
      await starting;
      assert.equal(scheduler.state, 'Running');
      await scheduler.stop();
    } finally {
      await proxy.cut();
    }
  });
});
