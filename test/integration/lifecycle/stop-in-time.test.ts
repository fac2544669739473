import assert from 'node:assert/strict';
import { startMongod, type EmbeddedMongod } from '@chronos/mongod';
import { Scheduler, type SchedulerOptions, type StopReport } from '../../../src/index.js';
import { SHORT_INTERVALS } from '../../support/database.js';
import { blocker, countEvents, nextEvent } from '../../support/events.js';
import { waitUntil } from '../../support/wait-until.js';

/** More than the two seconds of stop('2s'), for a busy machine; much less than the ten seconds of an operation. */
const IN_TIME_MS = 4000;

describe('stop() while MongoDB is frozen', () => {
  let mongod: EmbeddedMongod;
  let schedulers: Scheduler[] = [];

  before(async () => {
    mongod = await startMongod();
  });

  after(() => mongod.stop());

  afterEach(async () => {
    process.kill(mongod.members[0]!.pid, 'SIGCONT');
    await Promise.all(schedulers.map((scheduler) => scheduler.stop('3s')));
    schedulers = [];
  });

  const freeze = (): boolean => process.kill(mongod.members[0]!.pid, 'SIGSTOP');

  function create(options: Partial<SchedulerOptions> = {}): Scheduler {
    const scheduler = new Scheduler({ uri: mongod.uri, ...SHORT_INTERVALS, logger: false, ...options });
    schedulers.push(scheduler);
    return scheduler;
  }

  /**
   * Stops with two seconds, and checks that it takes no longer. Sockets to a server that does not reply close later: sessions
   * are given up after two seconds, and the driver ends handshakes only at its time-out of five seconds.
   */
  async function stopInTime(scheduler: Scheduler): Promise<StopReport> {
    assert.ok(openSockets() > 0);
    const startedAt = performance.now();
    const report = await scheduler.stop('2s');
    const took = performance.now() - startedAt;
    assert.ok(took < IN_TIME_MS, `stop('2s') took ${took} ms`);
    assert.equal(scheduler.state, 'Stopped');
    await waitUntil('no sockets to the server are left', () => Promise.resolve(openSockets() === 0), 15_000);
    return report;
  }

  /** Of this process; the test has no connection of its own. */
  const openSockets = (): number =>
    process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length;

  it('ends a worker in time and returns the jobs whose outcomes it could not store [C12]', async () => {
    const worker = create({ concurrency: 2 });
    const blockers = [blocker(), blocker()];
    let calls = 0;
    worker.registerHandler('work', () => blockers[calls++]!.block());
    const started = countEvents(worker, 'job:start', 2);
    await worker.start();
    const handles = await Promise.all([worker.dispatch('work'), worker.dispatch('work')]);
    await started;
    freeze();
    for (const { release } of blockers) release();
    const { left } = await stopInTime(worker);
    assert.deepEqual(
      left.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      handles.map(({ id }) => ({ id, taskType: 'work' })),
    );
  });

  it('ends a pass in time and returns the job whose outcome it could not store [C12]', async () => {
    const scheduler = create();
    const { block, entered, release } = blocker();
    scheduler.registerHandler('pass', block);
    const { id } = await scheduler.dispatch('pass');
    const pass = scheduler.run().catch((error: unknown) => error);
    await entered;
    freeze();
    release();
    assert.deepEqual((await stopInTime(scheduler)).left, [{ id, taskType: 'pass' }]);
    await pass;
  });

  it('ends a start in time, in each of its steps [C12]', async () => {
    const steps: ((scheduler: Scheduler) => Promise<unknown>)[] = [
      // Connecting: the first try fails after five seconds.
      () => Promise.resolve(freeze()),
      async (scheduler) => {
        await waitUntil('it is connected', () => Promise.resolve(scheduler.load.connection !== null));
        freeze();
      },
    ];
    for (const reachStep of steps) {
      const scheduler = create();
      scheduler.registerHandler('work', () => undefined);
      const starting = scheduler.start().catch((error: unknown) => error);
      await reachStep(scheduler);
      assert.deepEqual(await stopInTime(scheduler), { left: [] });
      assert.ok((await starting) instanceof Error);
      process.kill(mongod.members[0]!.pid, 'SIGCONT');
    }
  });

  it('starts again after it was stopped during a start that hung [C12]', async () => {
    const scheduler = create({ taskHandlers: { later: () => 'done' } });
    freeze();
    const first = scheduler.start().catch((error: unknown) => error);
    await scheduler.stop('1s');
    process.kill(mongod.members[0]!.pid, 'SIGCONT');
    await scheduler.start();
    await first;
    const complete = nextEvent(scheduler, 'job:complete');
    await scheduler.dispatch('later');
    assert.equal((await complete).result, 'done');
  });
});
