import assert from 'node:assert/strict';
import type { JobDocument } from '../../../../src/domain/job/job.js';
import {
  decideRecovery,
  recoveryExecution,
  type LockOwner,
  ownerFate,
  type Recovery,
  type RecoveryInput,
} from '../../../../src/domain/job/recovery.js';
import { aJob } from '../../../support/factories/job.js';
import { timeAfter, START } from '../../../support/instants.js';

const RETRIES = { max: 3, base: 1000, cap: 60_000, jitter: 'none' } as const;

describe('decideRecovery', () => {
  function decide(fields: Partial<JobDocument>, input: Partial<RecoveryInput> = {}): Recovery {
    const job = aJob({ status: 'RUNNING', lockedBy: 'worker-7', ...fields });
    const usual = { ownerIsGone: true, maxCrashes: 3, retries: RETRIES, now: START, random: () => 0.5 };
    return decideRecovery({ job, ...usual, ...input });
  }

  function errorOf(recovery: Recovery): Error | null {
    assert.ok(recovery.transition !== 'recoverCancelled');
    return recovery.error;
  }

  it('runs a RUNNING job again after the backoff, which doubles with every crash', () => {
    for (const [crashes, delay] of [
      [0, 1000],
      [1, 2000],
      [2, 4000],
    ] as const) {
      const recovery = decide({ crashes }, { maxCrashes: 10 });
      assert.ok(recovery.transition === 'recover');
      assert.deepEqual(recovery.nextRunAt, timeAfter(delay));
      assert.match(recovery.error!.message, /^worker worker-7 died, froze or lost its connection/);
    }
  });

  it("uses the task type's retries, with the job's own on top", () => {
    const retries = { ...RETRIES, base: 7000, jitter: 'full' } as const;
    const ofType = decide({}, { retries });
    const ofJob = decide({ retries: { base: 200, jitter: 'none' } }, { retries });
    assert.ok(ofType.transition === 'recover' && ofJob.transition === 'recover');
    assert.deepEqual([ofType.nextRunAt, ofJob.nextRunAt], [timeAfter(3500), timeAfter(200)]);
  });

  it('fails a job that reaches maxCrashes', () => {
    assert.equal(decide({ crashes: 1 }).transition, 'recover');
    const failed = decide({ crashes: 2 });
    assert.equal(failed.transition, 'recoverFailed');
    assert.match(
      errorOf(failed)!.message,
      /^worker worker-7 died.* the job; it crashed 3 times and is not retried$/,
    );
  });

  it('fails a job that has passed its maxRunningTime', () => {
    const firstStartedAt = timeAfter(-30_000);
    assert.equal(decide({ firstStartedAt, maxRunningTime: 30_001 }).transition, 'recover');
    const failed = decide({ firstStartedAt, maxRunningTime: 30_000 });
    assert.equal(failed.transition, 'recoverFailed');
    assert.equal((errorOf(failed) as { code?: string } | null)?.code, 'JOB_RAN_TOO_LONG');
  });

  it('runs a QUEUED job again immediately, whatever its counters are', () => {
    const recovery = decide({ status: 'QUEUED', crashes: 5, nextRunAt: timeAfter(-1000) });
    assert.deepEqual(recovery, { transition: 'recover', nextRunAt: timeAfter(-1000), error: null });
  });

  it('cancels a job whose cancellation was requested, before anything else', () => {
    const cancelRequested = { reason: null, at: START };
    for (const status of ['QUEUED', 'RUNNING'] as const) {
      assert.deepEqual(decide({ status, crashes: 5, cancelRequested }), { transition: 'recoverCancelled' });
    }
  });
});

describe('recovery of a job whose owner is alive', () => {
  const job = aJob({ status: 'RUNNING', lockedBy: 'worker-7', crashes: 2, startedAt: timeAfter(-5000) });
  const input = { job, ownerIsGone: false, maxCrashes: 3, retries: RETRIES, now: START, random: () => 0.5 };

  it('runs it again immediately and counts nothing', () => {
    assert.deepEqual(decideRecovery(input), {
      ...{ transition: 'recover', nextRunAt: job.nextRunAt, error: null },
    });
    const { outcome, error } = recoveryExecution(job, false, START);
    assert.deepEqual([outcome, error?.code], ['lost', 'LOCK_LOST']);
  });

  it('ends it if it has run too long', () => {
    const tooLong = { ...job, maxRunningTime: 1000, firstStartedAt: timeAfter(-5000) };
    assert.equal(decideRecovery({ ...input, job: tooLong }).transition, 'recoverFailed');
  });
});

describe('ownerFate', () => {
  const job = { queuedAt: timeAfter(-100_000), lockedUntil: timeAfter(-1000) };
  const owner: LockOwner = {
    ...{ state: 'Running', startedAt: timeAfter(-200_000), heartbeatAt: timeAfter(-5000) },
  };
  const limits = { now: START, maxWait: 60_000, interval: 10_000 };
  const cases: [string, 'gone' | 'alive' | 'unknown', LockOwner | undefined, Partial<typeof limits>?][] = [
    ['there is no such worker', 'gone', undefined],
    ['it has stopped', 'gone', { ...owner, state: 'Stopped' }],
    ['it sent a heartbeat after the lock expired', 'alive', { ...owner, heartbeatAt: timeAfter(-500) }],
    ['its next heartbeat is not due yet', 'unknown', owner],
    ['it has missed two heartbeats', 'gone', { ...owner, heartbeatAt: timeAfter(-25_000) }],
    ['locks are shorter than the time between heartbeats', 'gone', owner, { maxWait: 1000 }],
    [
      'another process has its id now',
      'gone',
      { ...owner, startedAt: timeAfter(-2000), heartbeatAt: timeAfter(-500) },
    ],
  ];
  for (const [name, expected, worker, changed = {}] of cases) {
    it(`is ${expected} if ${name}`, () => {
      assert.equal(ownerFate(job, worker, { ...limits, ...changed }), expected);
    });
  }
});

describe('recoveryExecution', () => {
  it('is the execution log row of the attempt that crashed', () => {
    const job = aJob({
      status: 'RUNNING',
      lockedBy: 'worker-7',
      attempts: 1,
      fence: 4,
      startedAt: timeAfter(-2000),
    });
    const { _id, attempt, workerId, outcome, duration, error } = recoveryExecution(job, true, START);
    assert.deepEqual(
      [_id, attempt, workerId, outcome, duration, error?.code],
      [`${job._id}:4`, 2, 'worker-7', 'crashed', 2000, 'JOB_CRASHED'],
    );
  });
});
