import assert from 'node:assert/strict';
import {
  FINISHED_STATUSES,
  isFinished,
  JOB_STATUSES,
  type JobStatus,
} from '../../../../src/domain/job/job.js';
import { isRescheduled, type OutcomeKind, TRANSITION_OF } from '../../../../src/domain/job/outcome.js';
import { type Transition, type TransitionName, TRANSITIONS } from '../../../../src/domain/job/transitions.js';
import { explainChange } from '../../../support/invariants.js';

const entries = Object.entries<Transition>(TRANSITIONS) as [TransitionName, Transition][];

/** Claim, recovery, release (also of a job that must wait), cancel of a job that does not run, the end of a malformed one, and manual retry; nothing else changes the owner. */
const OWNER_CHANGES: TransitionName[] = [
  'claim',
  'buffer',
  'recover',
  'recoverFailed',
  'recoverCancelled',
  'release',
  'wait',
  'cancel',
  'expire',
  'reject',
  'retry',
];

describe('transitions', () => {
  for (const [name, { fence }] of entries) {
    const isRaised = OWNER_CHANGES.includes(name);
    it(`${name} ${isRaised ? 'increments the fence' : 'does not change the fence'}`, () => {
      assert.equal(fence, isRaised ? 1 : 0);
    });
  }

  it('leave a finished status only by a manual retry', () => {
    for (const [name, { from }] of entries) {
      if (name !== 'retry') assert.ok(!from.some(isFinished), name);
    }
    assert.deepEqual([...TRANSITIONS.retry.from].sort(), [...FINISHED_STATUSES].sort());
  });

  it('claim only SCHEDULED jobs, directly or as prefetched ones', () => {
    assert.deepEqual(explainChange('SCHEDULED', 'RUNNING', 1), ['claim']);
    assert.deepEqual(explainChange('SCHEDULED', 'QUEUED', 1), ['buffer']);
    for (const from of JOB_STATUSES.filter((status) => status !== 'SCHEDULED')) {
      assert.deepEqual(explainChange(from, 'RUNNING', 1), []);
      assert.deepEqual(explainChange(from, 'QUEUED', 1), []);
    }
  });

  it('settle from QUEUED and RUNNING, because a prefetched job may settle before its start is written', () => {
    for (const name of Object.values(TRANSITION_OF)) {
      assert.deepEqual([...TRANSITIONS[name].from].sort(), ['QUEUED', 'RUNNING'], name);
    }
  });

  it('reach every status from PENDING', () => {
    const reached = new Set<JobStatus>(['PENDING']);
    for (let before = 0; before < reached.size;) {
      before = reached.size;
      for (const [, { from, to }] of entries) if (from.some((status) => reached.has(status))) reached.add(to);
    }
    assert.deepEqual([...reached].sort(), [...JOB_STATUSES].sort());
  });
});

describe('explainChange', () => {
  it('names every transition from each of its statuses', () => {
    for (const [name, { from, to, fence }] of entries) {
      for (const status of from) assert.ok(explainChange(status, to, fence).includes(name));
    }
  });

  it('distinguishes a settled job from a released one by the fence', () => {
    assert.deepEqual(explainChange('RUNNING', 'SCHEDULED', 0), ['retryLater', 'snooze']);
    assert.deepEqual(explainChange('RUNNING', 'SCHEDULED', 1), ['release', 'recover']);
  });

  it('returns nothing for illegal changes', () => {
    assert.deepEqual(explainChange('COMPLETED', 'RUNNING', 1), []);
    assert.deepEqual(explainChange('SCHEDULED', 'COMPLETED', 0), []);
    assert.deepEqual(explainChange('RUNNING', 'COMPLETED', 1), []);
    assert.deepEqual(explainChange('FAILED', 'SCHEDULED', 0), []);
    assert.deepEqual(explainChange('SCHEDULED', 'RUNNING', 2), []);
    assert.deepEqual(explainChange('RUNNING', 'PENDING', 0), []);
  });
});

describe('isRescheduled', () => {
  it('is true only for outcomes after which the job runs again', () => {
    const kinds = Object.keys(TRANSITION_OF) as OutcomeKind[];
    const rescheduled = kinds.filter((kind) =>
      isRescheduled({ kind } as Parameters<typeof isRescheduled>[0]),
    );
    assert.deepEqual(rescheduled.sort(), ['released', 'retry', 'snoozed']);
  });
});
