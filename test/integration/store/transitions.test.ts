import assert from 'node:assert/strict';
import { OutageMonitor } from '../../../src/runtime/outage-monitor.js';
import { DEFAULTS } from '../../../src/config/options.js';
import { JOB_STATUSES, type JobDocument } from '../../../src/domain/job/job.js';
import type { Outcome } from '../../../src/domain/job/outcome.js';
import { type TransitionName, TRANSITIONS } from '../../../src/domain/job/transitions.js';
import { Sweeper } from '../../../src/maintenance/sweeper.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { createStore, type Store } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { TestDatabase } from '../../support/database.js';
import { timeAfter, START } from '../../support/instants.js';
import { explainChange } from '../../support/invariants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { noInvalidJobs } from '../../support/no-invalid-jobs.js';

const GRANT = { token: 'new token', workerId: 'me', lockedUntil: timeAfter(60_000) };
const LONG_AFTER = timeAfter(3_600_000);
const LATER = timeAfter(5000);

interface Operation {
  /** The transitions that it may make; empty for an operation that never changes a status. */
  transitions: TransitionName[];
  apply: (store: Store, job: JobDocument) => Promise<unknown>;
}

function settleAs(outcome: Outcome): Operation['apply'] {
  return (store, { _id: jobId, lockToken }) =>
    store.settle([
      { jobId, token: lockToken ?? 'none', workerId: 'me', outcome, startedAt: START, finishedAt: LATER },
    ]);
}

/** Every operation of the store that writes jobs. */
const OPERATIONS: Record<string, Operation> = {
  'claim one': {
    transitions: ['claim'],
    apply: (store, { queue, taskType }) =>
      store.claimOne(
        { queues: [queue], taskTypes: [taskType], now: LATER, withoutCrashSuspects: false, exclude: [] },
        GRANT,
      ),
  },
  'claim a batch': {
    transitions: ['claim'],
    apply: (store, job) => store.claimBatch('claim', [job], GRANT, LATER),
  },
  prefetch: {
    transitions: ['buffer'],
    apply: (store, job) => store.claimBatch('buffer', [job], GRANT, LATER),
  },
  'mark as started': {
    transitions: ['begin'],
    apply: (store, job) =>
      store.markStarted([{ jobId: job._id, token: job.lockToken ?? 'none', startedAt: LATER }]),
  },
  'settle: completed': {
    transitions: ['complete'],
    apply: settleAs({ kind: 'completed', result: { ok: true } }),
  },
  'settle: completed without a result': {
    transitions: ['complete'],
    apply: settleAs({ kind: 'completed', result: undefined }),
  },
  'settle: failed': {
    transitions: ['fail'],
    apply: settleAs({ kind: 'failed', error: new Error('no') }),
  },
  'settle: retry': {
    transitions: ['retryLater'],
    apply: settleAs({ kind: 'retry', error: new Error('no'), nextRunAt: LATER }),
  },
  'settle: snoozed': { transitions: ['snooze'], apply: settleAs({ kind: 'snoozed', until: LATER }) },
  'settle: cancelled': {
    transitions: ['stopRunning'],
    apply: settleAs({ kind: 'cancelled', reason: 'enough' }),
  },
  'settle: released': { transitions: ['release'], apply: settleAs({ kind: 'released' }) },
  release: {
    transitions: ['release'],
    apply: (store, job) => store.release(job.lockToken ?? 'none', [job._id], LATER),
  },
  'release by token': {
    transitions: ['release'],
    apply: (store, job) => store.releaseByToken(job.lockToken ?? 'none', LATER),
  },
  renew: {
    transitions: [],
    apply: (store, job) =>
      store.renew([{ kind: 'job', id: job._id, token: job.lockToken ?? 'none', length: 1000 }], LATER),
  },
  progress: {
    transitions: [],
    apply: (store, job) =>
      store.saveProgress(job._id, job.lockToken ?? 'none', { value: 1, note: null, at: LATER }),
  },
  reschedule: { transitions: [], apply: (store, job) => store.reschedule(job._id, LONG_AFTER, LATER) },
  cancel: { transitions: ['cancel'], apply: (store, job) => store.cancel(job._id, 'enough', LATER) },
  hold: { transitions: ['hold'], apply: (store, job) => store.hold(job._id, null, LATER) },
  unhold: { transitions: ['unhold'], apply: (store, job) => store.unhold(job._id, LATER) },
  retry: { transitions: ['retry'], apply: (store, job) => store.retry(job._id, LATER) },
  sweep: { transitions: ['recover'], apply: (store) => sweep(store) },
  'sweep at the last crash': {
    transitions: ['recover', 'recoverFailed'],
    apply: (store) => sweep(store, { maxCrashes: 1 }),
  },
};

function sweep(store: Store, { maxCrashes = 3 } = {}): Promise<number> {
  const clock = new ManualClock(LONG_AFTER);
  return new Sweeper({
    clock,
    outages: new OutageMonitor(clock, DEFAULTS.lockTimeout),
    events: new EventBus('worker'),
    random: () => 0,
    workerId: 'sweeper',
    registry: aRegistry(),
    store,
    options: { ...DEFAULTS, maxCrashes },
    engine: { wake: () => undefined },
    invalidJobs: noInvalidJobs,
  }).runOnce();
}

function isAllowed(name: TransitionName, { status }: JobDocument): boolean {
  return (TRANSITIONS[name].from as readonly string[]).includes(status);
}

describe('status transitions', () => {
  const database = new TestDatabase();
  let store: Store;

  before(async () => {
    await database.open();
    store = createStore(database.stored);
  });
  after(() => database.close());

  async function insertOnly(fields: Partial<JobDocument>): Promise<JobDocument> {
    const job = aJob(fields);
    await database.collections.jobs.deleteMany();
    await database.collections.executions.deleteMany();
    await database.collections.jobs.insertOne(job);
    return job;
  }

  for (const [name, { transitions, apply }] of Object.entries(OPERATIONS)) {
    it(`${name} makes ${transitions.join(' or ') || 'no transition'}, and only from the statuses that allow it [C4]`, async () => {
      for (const status of JOB_STATUSES) {
        const before = await insertOnly({ status });
        await apply(store, before);
        const now = await database.collections.jobs.findOne({ _id: before._id });
        assert.ok(now !== null, 'no operation removes a job');
        const expected = transitions.filter((transition) => isAllowed(transition, before));
        const fenceIncrease = now.fence - before.fence;
        if (expected.length > 0) {
          const names = explainChange(before.status, now.status, fenceIncrease);
          assert.ok(
            names.some((transition) => expected.includes(transition)),
            `${status} became ${now.status}, fence + ${fenceIncrease}`,
          );
        } else {
          assert.deepEqual([now.status, fenceIncrease], [status, 0], `${name} changed a ${status} job`);
          // cancel() stores a request in a locked job, which keeps its status.
          if (transitions.length > 0 && name !== 'cancel') assert.deepEqual(now, before);
        }
      }
    });
  }

  for (const name of ['release', 'release by token', 'settle: retry', 'settle: snoozed', 'sweep']) {
    it(`${name} does not reschedule a job with a cancel request [C4]`, async () => {
      for (const status of ['QUEUED', 'RUNNING'] as const) {
        const before = await insertOnly({ status, cancelRequested: { reason: 'enough', at: START } });
        await OPERATIONS[name]!.apply(store, before);
        const now = await database.collections.jobs.findOne({ _id: before._id });
        assert.notEqual(now?.status, 'SCHEDULED');
        if (now?.status === status) assert.deepEqual(now, before);
        else assert.notDeepEqual(explainChange(status, now!.status, now!.fence - before.fence), []);
      }
    });
  }

  it('a finished job leaves its status only when a person retries it [C4]', () => {
    const leaving = Object.entries(TRANSITIONS).filter(([, { from }]) =>
      (from as readonly string[]).some((status) => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(status)),
    );
    assert.deepEqual(
      leaving.map(([name]) => name),
      ['retry'],
    );
  });

  it('the database rejects a job with an unknown status [C4]', async () => {
    await assert.rejects(
      database.collections.jobs.insertOne(aJob({ status: 'SLEEPING' as never })),
      /Document failed validation/,
    );
  });
});
