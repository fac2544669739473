import assert from 'node:assert/strict';
import mongoose from 'mongoose';
import { startMongod, type EmbeddedMongod } from '@chronos/mongod';
import { Scheduler, type SchedulerOptions } from '../../../src/index.js';
import { SHORT_INTERVALS } from '../../support/database.js';
import { nextEvent } from '../../support/events.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { nextMeasurement } from '../../support/measurements.js';
import { waitUntil } from '../../support/wait-until.js';

/** With its own replica set of three. Polls are so rare that only the change stream can start a job. */
describe('the change stream during a failover', () => {
  let mongod: EmbeddedMongod;
  let worker: Scheduler;
  let other: Scheduler;

  beforeEach(async () => {
    mongod = await startMongod({ members: 3 });
    worker = create({ pollInterval: '1h', taskHandlers: { work: () => undefined } });
    other = create();
    const streamOpened = nextMeasurement(worker, 'round', ({ operation }) => operation === 'watch changes');
    await worker.start();
    await streamOpened;
    await runJobs(1);
  });

  afterEach(async () => {
    await Promise.all([worker.stop('3s'), other.stop('3s')]);
    await mongod.stop();
  });

  function create(options: Partial<SchedulerOptions> = {}): Scheduler {
    const given = { ...SHORT_INTERVALS, ...withoutRenewalThread, logger: false, ...options } as const;
    return new Scheduler({ uri: mongod.uri, ...given });
  }

  /** Another process dispatches jobs one after the other, each when the one before has started. */
  async function runJobs(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const started = nextEvent(worker, 'job:start');
      const { id } = await other.dispatch('work');
      assert.equal((await started).jobId, id);
    }
  }

  /** The address of the primary, or null while there is none. */
  async function findPrimary(): Promise<string | null> {
    const found = await Promise.all(
      mongod.members.map(async ({ host, uri }) => {
        const connection = mongoose.createConnection(uri, { serverSelectionTimeoutMS: 1000 });
        try {
          const hello = await (await connection.asPromise()).getClient().db('admin').command({ hello: 1 });
          return hello['isWritablePrimary'] === true ? host : null;
        } catch {
          return null;
        } finally {
          await connection.destroy();
        }
      }),
    );
    return found.find((host) => host !== null) ?? null;
  }

  async function otherPrimary(than: string): Promise<void> {
    await waitUntil('another member is the primary', async () => {
      const primary = await findPrimary();
      return primary !== null && primary !== than;
    });
  }

  it('still starts jobs of other processes after the primary has stepped down [B19] [C1]', async () => {
    const before = await findPrimary();
    const { uri } = mongod.members.find(({ host }) => host === before)!;
    const connection = await mongoose.createConnection(uri).asPromise();
    await connection.getClient().db('admin').command({ replSetStepDown: 30 });
    await connection.destroy();
    await otherPrimary(before!);
    await runJobs(5);
  }).timeout(90_000);

  it('still starts jobs of other processes after the primary was killed, also those dispatched meanwhile [B19] [C1]', async () => {
    const before = await findPrimary();
    const broke = nextEvent(worker, 'worker:error', ({ operation }) => operation === 'watch changes');
    const recovered = nextEvent(worker, 'worker:recovered', ({ operation }) => operation === 'watch changes');
    process.kill(mongod.members.find(({ host }) => host === before)!.pid, 'SIGKILL');
    await broke;
    const started = nextEvent(worker, 'job:start');
    await otherPrimary(before!);
    const { id } = await other.dispatch('work');
    assert.equal((await started).jobId, id);
    await recovered;
    await runJobs(5);
  }).timeout(90_000);
});
