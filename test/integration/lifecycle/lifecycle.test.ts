import assert from 'node:assert/strict';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { inspect } from 'node:util';
import { serveHttp } from '../../../src/http/server.js';
import { Scheduler, type LifecycleState } from '../../../src/index.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { nextEvent, recordEvents } from '../../support/events.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { waitUntil } from '../../support/wait-until.js';

describe('the lifecycle of a scheduler', () => {
  const database = useSharedDatabase();

  function recordStates(scheduler: Scheduler): LifecycleState[] {
    const seen: LifecycleState[] = [];
    scheduler.on('worker:state', ({ state, previous }) => {
      assert.equal(scheduler.state, state);
      assert.notEqual(previous, state);
      seen.push(state);
    });
    return seen;
  }

  it('emits Starting, Running, Stopping and Stopped [F8]', async () => {
    const { scheduler } = manualScheduler(database);
    const seen = recordStates(scheduler);
    assert.equal(scheduler.state, 'Stopped');
    const starting = scheduler.start();
    assert.equal(scheduler.state, 'Starting');
    await starting;
    assert.equal(scheduler.state, 'Running');
    const stopping = scheduler.stop();
    assert.equal(scheduler.state, 'Stopping');
    await stopping;
    assert.equal(scheduler.state, 'Stopped');
    assert.deepEqual(seen, ['Starting', 'Running', 'Stopping', 'Stopped']);
  });

  it('starts once when start() is called twice [F8]', async () => {
    const { scheduler } = manualScheduler(database);
    const seen = recordStates(scheduler);
    await Promise.all([scheduler.start(), scheduler.start()]);
    await scheduler.start();
    assert.deepEqual(seen, ['Starting', 'Running']);
  });

  it('stops once when stop() is called twice [F8]', async () => {
    const { scheduler } = manualScheduler(database);
    const seen = recordStates(scheduler);
    await scheduler.start();
    assert.deepEqual(await Promise.all([scheduler.stop(), scheduler.stop()]), [{ left: [] }, { left: [] }]);
    assert.deepEqual(await scheduler.stop(), { left: [] });
    assert.deepEqual(seen, ['Starting', 'Running', 'Stopping', 'Stopped']);
  });

  it('stops a scheduler and its HTTP server at the end of the block that uses them [F8]', async () => {
    const { scheduler } = manualScheduler(database);
    const seen = recordStates(scheduler);
    let address = '';
    const use = async (): Promise<void> => {
      await using worker = scheduler;
      await using server = await serveHttp(worker, { port: 0 });
      await worker.start();
      address = server.address;
      assert.equal((await fetch(`${address}/healthz`)).status, 200);
      throw new Error('the end');
    };
    await assert.rejects(use(), { message: 'the end' });
    assert.deepEqual(seen, ['Starting', 'Running', 'Stopping', 'Stopped']);
    await assert.rejects(fetch(`${address}/healthz`), 'the server is closed');
    await scheduler[Symbol.asyncDispose]();
    assert.equal(scheduler.state, 'Stopped');
  });

  it('ignores stop() before start() [F8]', async () => {
    const { scheduler } = manualScheduler(database);
    assert.deepEqual(await scheduler.stop(), { left: [] });
    assert.equal(scheduler.state, 'Stopped');
  });

  it('can be started again after stop(), any number of times [F8]', async () => {
    const scheduler = database.scheduler(withoutRenewalThread);
    scheduler.registerHandler('work', () => undefined);
    for (let round = 1; round <= 3; round++) {
      const complete = nextEvent(scheduler, 'job:complete');
      await scheduler.start();
      await scheduler.dispatch('work');
      await complete;
      await scheduler.stop();
      assert.equal(await database.collections.jobs.countDocuments({ status: 'COMPLETED' }), round);
    }
  });

  it('rejects start() while it is stopping [F8]', async () => {
    const { scheduler } = manualScheduler(database);
    await scheduler.start();
    const stopping = scheduler.stop();
    await assert.rejects(scheduler.start(), { code: 'WRONG_STATE' });
    await stopping;
    await scheduler.start();
  });

  it('cancels a start when stop() is called during it, and leaves nothing open [F8]', async () => {
    const { scheduler: other } = manualScheduler(database);
    other.registerHandler('work', () => undefined);
    for (const turns of [0, 1, 5, 20]) {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', () => assert.fail('the scheduler is stopped'));
      const starting = scheduler.start().catch((error: unknown) => error);
      await flushEventLoop(turns);
      await scheduler.stop();
      await starting;
      assert.deepEqual([scheduler.state, scheduler.load.connection, clock.sleepers], ['Stopped', null, 0]);
      await other.dispatch('work');
      assert.equal(await other.run(), 1);
    }
  });

  it('stores the state of a worker in the collection workers [F8]', async () => {
    const { workers } = database.collections;
    const worker = database.scheduler({
      ...withoutRenewalThread,
      workerId: 'me',
      queues: ['a', 'b'],
      concurrency: 7,
    });
    worker.registerHandler('work', () => undefined);
    await worker.start();
    await waitUntil('the first heartbeat', async () => (await workers.countDocuments()) > 0);
    const [shown] = await workers.find().toArray();
    assert.deepEqual(
      [shown?._id, shown?.queues, shown?.taskTypes, shown?.concurrency, shown?.pid],
      ['me', ['a', 'b'], ['shell', 'url', 'event', 'work'], 7, process.pid],
    );
    await worker.stop();
    assert.equal((await workers.findOne({ _id: 'me' }))?.state, 'Stopped');
  });

  it('stores no worker for a process that only dispatches', async () => {
    const { scheduler } = manualScheduler(database);
    await scheduler.dispatch('work');
    await scheduler.stop();
    assert.equal(await database.collections.workers.countDocuments(), 0);
  });

  it('rejects start() and enters the state Error when MongoDB rejects the login, with credentials redacted [F8]', async () => {
    const uri = new URL(database.uri);
    uri.username = 'root';
    uri.password = 'secret';
    const scheduler = new Scheduler({ uri: uri.href, ...withoutRenewalThread, logger: false });
    const changes = recordEvents(scheduler, 'worker:state');
    await assert.rejects(scheduler.start(), (error: Error) => {
      assert.equal((error as { code?: string }).code, 'MONGODB_UNREACHABLE');
      assert.doesNotMatch(inspect(error), /secret/);
      return true;
    });
    assert.equal(scheduler.state, 'Error');
    assert.deepEqual(
      changes.map(({ event }) => (event as { state: string }).state),
      ['Starting', 'Error'],
    );
    const { error } = changes[1]!.event as { error?: Error };
    assert.match(error!.message, /^MongoDB could not be reached \(tried once\): Authentication failed/);
    await assert.rejects(scheduler.start(), { code: 'MONGODB_UNREACHABLE' });
    assert.deepEqual(await scheduler.stop(), { left: [] });
    assert.equal(scheduler.state, 'Stopped');
    const { state, previous } = changes.at(-1)!.event as { state: string; previous: string };
    assert.deepEqual([previous, state], ['Error', 'Stopped']);
  });

  describe('when MongoDB is unreachable', () => {
    let port: number;
    let server: Server;
    beforeEach(async () => {
      // Closes every connection.
      server = createServer((socket) => socket.destroy());
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      port = (server.address() as AddressInfo).port;
    });
    afterEach(() => new Promise((resolve) => server.close(resolve)));

    it('retries with backoff and reports every attempt [F8] [Y9]', async () => {
      const uri = `mongodb://127.0.0.1:${port}/chronos?directConnection=true`;
      const scheduler = new Scheduler({ uri, connectTimeout: '1h', ...withoutRenewalThread, logger: false });
      const trouble = nextEvent(scheduler, 'worker:error');
      const starting = scheduler.start().catch((error: unknown) => error as Error);
      const { operation, failures, retryIn } = await trouble;
      assert.deepEqual([operation, failures, retryIn], ['connect', 1, 250]);
      await scheduler.stop();
      assert.ok((await starting) instanceof Error);
      assert.equal(scheduler.state, 'Stopped');
    });
  });
});
